"""``frugalvae status``: show what a classifier knows, its size, and warnings.

All of it is in the file. The classifier is not made: that might need PyTorch, or a module to trust.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add
from frugalvae.console import Display, print_json
from frugalvae.errors import MemoryFileError
from frugalvae.formatting import local_time, plural, shortened, size

if TYPE_CHECKING:
    from frugalvae.storage.model_file import Contents
    from frugalvae.storage.store import Store

MOST = 12  # classes of a task that are named, without --all

#: What parts call what they keep, as their components are named, by class and by place in the
#: file: the first that fits, or else the attribute's own name.
NAMES = {
    "FactorMemory": {
        "scatter_": "shared covariance",
        "factors_*": "class directions",
        "spread_": "class variances",
    },
    "GaussianMemory": {"pooled_": "shared covariance"},
    "MomentMemory": {
        "arrays.means": "means",
        "arrays.roots": "class scatters",
        "arrays.root_scales": "class scatters",
        "arrays.variances": "shared covariance",
        "arrays.correlations": "shared covariance",
        "arrays.*": "class statistics",
    },
    "MixtureMemory": {"*.means": "means", "*.variances": "variances", "*.weights": "weights"},
    "FeTrILMemory": {"means_": "class means", "features_*": "features of the last task"},
    "VAEMemory": {
        "*.inputs.*": "covariances",
        "*.tables.*": "class embeddings",
        "decoders_.*": "decoder",
        "means_": "latent means",
        "noise_": "sample noise",
        "normaliser_.pooled_": "shared covariance",
        "normaliser_.count_": "shared covariance",
        "normaliser_*": "normalisation",
        "factors_": "class factors",
    },
    "ClassVAEMemory": {"noise_": "sample noise", "normaliser_*": "normalisation"},
    "PromptHead": {"network_*": "shared network"},
}
NAMES["FactorVAEMemory"] = NAMES["LiteralVAEMemory"] = NAMES["VAEMemory"]

SHORT = {"MomentMemory": "moments"}  # names of parts that write their state themselves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Show the classes by task, the encoder, the size of each component, how much room the "
        "layers of a decoder have left (R of the paper, and free directions), and warnings."
    )
    add(parser, "file")
    parser.add_argument("--all", action="store_true", help="name all classes, however many")
    add(parser, "--json")


def run(options: argparse.Namespace) -> None:
    """Print what the file says."""
    from frugalvae.storage.store import Store

    summary = summarise(Store(options.file))
    if options.json:
        print_json(summary.to_json())
    else:
        show(summary, Display(), summary.classes if options.all else MOST)


# --------------------------------------------------------------------------- what the file says


@dataclass(frozen=True)
class Layer:
    """The null space of one layer of a decoder after the last task."""

    decoder: int
    layer: int
    proportion: float
    free: int
    size: int
    used_up: bool


@dataclass(frozen=True)
class Summary:
    """What ``frugalvae status`` shows.

    Attributes
    ----------
    tasks
        The classes of each task and how many samples each was taught: 0 if it is known by name
        only, None if an old file does not say.
    components
        Parameters and bytes, by the names of ``memory_report()``.
    layers
        Null spaces, of memories that have them.
    aliases
        Names that classes had, with their labels; None for forgotten classes.
    """

    file: str
    bytes: int
    changed: str
    classes: int
    tasks: list[dict[str, int | None]]
    features: int
    encoder: dict[str, Any] | None
    memory: str
    head: str
    components: dict[str, tuple[int, int]]
    layers: list[Layer]
    warnings: list[str]
    undo: bool
    aliases: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        parts = {
            name: {"numbers": numbers, "bytes": taken}
            for name, (numbers, taken) in self.components.items()
        }
        return {**asdict(self), "components": parts}


def summarise(store: Store) -> Summary:
    """The summary of a file."""
    contents = store.read()
    document = contents.document
    try:
        layers, parts = list(layers_of(document["memory"])), components(contents)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise MemoryFileError(f"{store.given}: what it says of its layers is wrong") from error
    return Summary(
        str(store.given),
        contents.size,
        last_changed(document),
        len(document["classes"]["values"]),
        tasks_of(document),
        document["n_features"],
        document["encoder"],
        name_of(document["memory"]),
        name_of(document["head"]),
        parts,
        layers,
        warnings_of(document, layers),
        store.undo.exists(),
        document.get("aliases", {}),
    )


def last_changed(document: Mapping[str, Any]) -> str:
    """When it was last taught or changed, as its history says; copying a file changes nothing.

    >>> last_changed({"history": []})
    'at a time that it does not tell'
    """
    when = document["history"][-1].get("when") if document["history"] else None
    return local_time(when) if isinstance(when, str) else "at a time that it does not tell"


def tasks_of(document: Mapping[str, Any]) -> list[dict[str, int | None]]:
    """Classes and how many samples each was taught, by task."""
    labels = document["classes"]["values"]
    counts = document["n_samples_of_class"]
    counted = document["memory"]["class"] in SHORT  # so that 0 means: by name only
    tasks: list[dict[str, int | None]] = [{} for _ in range(document["n_tasks"])]
    for label, task, count in zip(labels, document["task_of_class"], counts, strict=True):
        tasks[task][str(label)] = count if count or counted else None
    return tasks


def name_of(part: Mapping[str, Any]) -> str:
    """What a memory or a head is called."""
    return str(part.get("name") or SHORT.get(part["class"], part["class"]))


def components(contents: Contents) -> dict[str, tuple[int, int]]:
    """Parameters and bytes of all tensors, added up by the names of :data:`NAMES`."""
    found: dict[str, tuple[int, int]] = {}
    tensors = {path: kept for path, kept in sorted(contents.arrays.items()) if kept.size}
    for path, kept in tensors.items():
        name = component_name(path, contents)
        numbers, taken = found.get(name, (0, 0))
        count = len(kept) if path == "digests" else kept.size  # of six bytes each
        found[name] = numbers + count, taken + kept.nbytes
    return found


def component_name(path: str, contents: Contents) -> str:
    """What a tensor is for, in the words of ``memory_report()``."""
    part, _, inside = path.partition(".")
    if path == "digests":
        return "digests of photographs"
    if part not in ("memory", "head"):
        return path
    about = contents.document[part]
    names = NAMES.get(about["class"], {})
    own = inside.partition(".")[0].strip("_").replace("_", " ")
    name = next((name for place, name in names.items() if fnmatchcase(inside, place)), own)
    if name == "covariances" and about["settings"].get("covariance") == "diagonal":
        name = "variances"
    first = f"{part}.{'.'.join(inside.split('.')[:2])}.network.layers.0.0"
    if name == "decoder" and first not in contents.arrays:
        name = "task layers"  # of a decoder that shares all others
    return name if part == "memory" else f"{part}: {name}"


def layers_of(memory: Mapping[str, Any]) -> Iterator[Layer]:
    """The null space of each layer after the last task."""
    from frugalvae.memories.vae.records import Thresholds

    states = [state["fields"] for state in memory.get("learned", {}).get("layers_", [])]
    thresholds = Thresholds.of(memory.get("settings", {}))
    last = max((state["task"] for state in states), default=0)
    for state in states:
        if state["task"] == last:
            proportion, rank, size = state["proportion"], state["rank"], state["size"]
            used_up = thresholds.exceeded(proportion, rank, size)
            yield Layer(state["decoder"], state["layer"], proportion, rank, size, used_up)


def warnings_of(document: Mapping[str, Any], layers: list[Layer]) -> list[str]:
    """What the owner should know."""
    from frugalvae.cli.common import few_samples

    found = [
        f"layer {layer.layer} of the decoder has {layer.free} of {layer.size} directions free and "
        f"R = {layer.proportion:.3f}: learning more may disturb old classes"
        for layer in layers
        if layer.used_up
    ]
    few = few_samples(document["classes"]["values"], document.get("n_samples_of_class", []))
    if few:
        found.append(few)
    if document["head_due"]:
        found.append("its head was not fitted after the last task: it cannot predict yet")
    if document["encoder"] is None:
        found.append("it does not say which encoder made its features: it cannot read images")
    return found


# --------------------------------------------------------------------------- what is shown


def show(summary: Summary, display: Display, most: int) -> None:
    """A screenful."""
    from frugalvae.encoders.remembered import described

    known = f"{plural(summary.classes, 'class')} in {plural(len(summary.tasks), 'task')}"
    taken = f"{size(summary.bytes)}, last changed {summary.changed}"
    encoder = described(summary.encoder) if summary.encoder else "not known"
    display.say(
        f"{summary.file}: {known}, {taken}",
        f"encoder  {encoder}; feature dimension {summary.features}",
        f"memory   {summary.memory}",
        f"head     {summary.head}",
        *(
            f"task {number}   {plural(len(classes), 'class')}: {named(classes, most)}"
            for number, classes in enumerate(summary.tasks, start=1)
        ),
    )
    display.say(*other_names(summary.aliases, most))
    show_tables(summary, display)
    display.say(*(f"warning: {warning}" for warning in summary.warnings))
    if summary.undo:
        display.say(f"The last change can be undone: frugalvae undo {summary.file}")


def other_names(aliases: Mapping[str, Any], most: int) -> list[str]:
    """Lines about folders that 'learn' takes for another class, or leaves out.

    >>> other_names({"wren": "house wren", "cat": None}, most=2)
    ['renamed  wren is house wren now', "forgotten  cat; 'learn' leaves it out, but for --again"]
    """
    renamed = [f"{name} is {label}" for name, label in aliases.items() if label is not None]
    gone = [name for name, label in aliases.items() if label is None]
    lines = [f"renamed  {shortened(renamed, most)} now"] if renamed else []
    if gone:
        lines.append(f"forgotten  {shortened(gone, most)}; 'learn' leaves it out, but for --again")
    return lines


def show_tables(summary: Summary, display: Display) -> None:
    """Parameters and bytes by component, and null spaces."""
    rows = [(name, *both) for name, both in summary.components.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    shown = [[name, f"{count:,}", f"{taken:,}"] for name, count, taken in rows]
    display.table("", ["component", "parameters", "bytes"], shown)
    if summary.layers:
        layers = [
            [f"{layer.layer}", f"{layer.proportion:.4f}", f"{layer.free} of {layer.size}"]
            for layer in summary.layers
        ]
        display.table("", ["layer of the decoder", "R", "free directions"], layers)


def named(classes: dict[str, int | None], most: int) -> str:
    """Classes and how many samples each was taught.

    >>> named({"emu": 30, "dax": None, "heron": 0, "cat": 2}, most=3)
    'emu (30), dax, heron (by name only) and 1 more'
    """
    shown = [
        name + (f" ({count})" if count else " (by name only)" if count == 0 else "")
        for name, count in classes.items()
    ]
    return shortened(shown, most)
