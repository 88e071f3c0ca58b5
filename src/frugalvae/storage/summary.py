"""Summaries: what a file says of itself.

The classifier is not made: that might need PyTorch, or a module to trust. Only the default memory
is, which needs neither, for what it expects of new samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from frugalvae.errors import MemoryFileError
from frugalvae.model.answers import few_samples
from frugalvae.model.history import last_changed

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.moments.held_out import Forecast
    from frugalvae.storage.model_file import Contents
    from frugalvae.storage.store import Store

KEPT = "memory.arrays."

#: What parts call what they keep, as their components are named, by class and by place in the
#: file: the first that fits, or else the attribute's own name.
NAMES = {
    "GaussianMemory": {"pooled_": "shared covariance"},
    "MomentMemory": {
        "arrays.means": "means",
        "arrays.roots": "class scatters",
        "arrays.root_scales": "class scatters",
        "arrays.variances": "shared covariance",
        "arrays.correlations": "shared covariance",
        "arrays.*": "class statistics",
    },
    "VAEMemory": {
        "*.inputs.*": "covariances",
        "*.tables.*": "class embeddings",
        "decoders_.*": "decoder",
        "means_": "latent means",
        "noise_": "sample noise",
        "normaliser_*": "normalisation",
    },
    "ClassVAEMemory": {"noise_": "sample noise", "normaliser_*": "normalisation"},
    "PromptHead": {"network_*": "shared network"},
}
NAMES["LiteralVAEMemory"] = NAMES["VAEMemory"]


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
        only.
    components
        Parameters and bytes, by the names of ``memory_report()``.
    layers
        Null spaces, of memories that have them.
    aliases
        Names that classes had, with their labels; None for forgotten classes.
    expected
        What to expect of new samples; None if nothing was held out.
    """

    file: str
    bytes: int
    changed: str
    classes: int
    tasks: list[dict[str, int]]
    features: int
    encoder: dict[str, Any] | None
    memory: str
    head: str
    components: dict[str, tuple[int, int]]
    layers: list[Layer]
    warnings: list[str]
    undo: bool
    aliases: dict[str, Any]
    expected: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        parts = {
            name: {"numbers": numbers, "bytes": taken}
            for name, (numbers, taken) in self.components.items()
        }
        return {**asdict(self), "components": parts}


def summarise(
    store: Store, model: Model | None = None, contents: Contents | None = None
) -> Summary:
    """The summary of a file; ``model`` and ``contents`` are what is in it, if they are at hand."""
    contents = contents or store.read()
    document = contents.document
    try:
        layers, parts = list(layers_of(document["memory"] or {})), components(contents)
        expected = expected_of(contents) if model is None else forecast_json(model.forecast)
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise MemoryFileError(f"{store.given}: what it records of its layers is wrong") from error
    return Summary(
        str(store.given),
        contents.size,
        last_changed(document),
        len(document["classes"]["values"]),
        tasks_of(document),
        document["n_features"],
        document["encoder"],
        name_of(document, "memory"),
        name_of(document, "head"),
        parts,
        layers,
        warnings_of(document, layers),
        store.undo.exists(),
        document.get("aliases", {}),
        expected,
    )


def tasks_of(document: Mapping[str, Any]) -> list[dict[str, int]]:
    """Classes and how many samples each was taught, by task."""
    labels, counts = document["classes"]["values"], document["n_samples_of_class"]
    tasks: list[dict[str, int]] = [{} for _ in range(document["n_tasks"])]
    for label, task, count in zip(labels, document["task_of_class"], counts, strict=True):
        tasks[task][str(label)] = count
    return tasks


def name_of(document: Mapping[str, Any], role: str) -> str:
    """What its memory or head is called; before it was taught, as it was asked for."""
    part = document[role] or document["parameters"][role]
    if not isinstance(part, dict):
        return str(part or "the usual one")
    return str(part.get("name") or part["class"])


def expected_of(contents: Contents) -> dict[str, Any] | None:
    """What to expect of new samples, as the memory says it that has margins."""
    from frugalvae.storage.states import Reader

    document = contents.document
    if f"{KEPT}margins" not in contents.arrays:
        return None
    found = Reader(contents.arrays, ()).read(document["memory"], "memory").forecast()
    labels = dict(zip(document["numbers"], document["classes"]["values"], strict=True))
    return forecast_json(found and replace(found, labels=[labels[y] for y in found.labels]))


def forecast_json(forecast: Forecast | None) -> dict[str, Any] | None:
    """A forecast as plain values, if there is one."""
    return forecast.to_json() if forecast else None


def components(contents: Contents) -> dict[str, tuple[int, int]]:
    """Parameters and bytes of all tensors, added up by the names of :data:`NAMES`."""
    from frugalvae.digests import BY_DIGEST  # imports NumPy, which help does not need

    found: dict[str, tuple[int, int]] = {}
    tensors = {path: kept for path, kept in sorted(contents.arrays.items()) if kept.size}
    for path, kept in tensors.items():
        name = component_name(path, contents)
        numbers, taken = found.get(name, (0, 0))
        count = len(kept) if path in BY_DIGEST else kept.size  # of 16 bytes each
        found[name] = numbers + count, taken + kept.nbytes
    return found


def component_name(path: str, contents: Contents) -> str:
    """What a tensor is for, in the words of ``memory_report()``."""
    from frugalvae.digests import BY_DIGEST

    part, _, inside = path.partition(".")
    if path in BY_DIGEST:
        return "digests of photographs"
    if part not in ("memory", "head"):
        return path
    about = contents.document[part]
    names = NAMES.get(about["class"], {})
    own = inside.partition(".")[0].strip("_").replace("_", " ")
    name = next((name for place, name in names.items() if fnmatchcase(inside, place)), own)
    if name == "covariances" and about["state"].get("covariance") == "diagonal":
        name = "variances"
    first = f"{part}.{'.'.join(inside.split('.')[:2])}.network.layers.0.0"
    if name == "decoder" and first not in contents.arrays:
        name = "task layers"  # of a decoder that shares all others
    return name if part == "memory" else f"{part}: {name}"


def layers_of(memory: Mapping[str, Any]) -> Iterator[Layer]:
    """The null space of each layer after the last task."""
    from frugalvae.paper.records import is_saturated

    states = [record["state"] for record in memory.get("state", {}).get("layers_", [])]
    last = max((state["task"] for state in states), default=0)
    for state in states:
        if state["task"] == last:
            proportion, rank, size = state["proportion"], state["rank"], state["size"]
            used_up = is_saturated(proportion, rank, size)
            yield Layer(state["decoder"], state["layer"], proportion, rank, size, used_up)


def warnings_of(document: Mapping[str, Any], layers: list[Layer]) -> list[str]:
    """What the owner should know."""
    if not document["classes"]["values"]:
        return ["it knows no class: all that it was taught was taken back"]
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
        found.append("the encoder of its features is unknown: it cannot read images")
    return found
