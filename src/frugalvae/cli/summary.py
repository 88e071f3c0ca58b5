"""A summary of a classifier's file, without making the classifier: it needs no PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from frugalvae.errors import MemoryFileError
from frugalvae.formatting import local_time, shortened
from frugalvae.memories.vae.records import Thresholds
from frugalvae.storage.store import Store

FEW = 3  # samples of a class below which it is often missed beside larger ones


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
        The classes of each task and how many samples each was taught; None if not known.
    components
        Parameters and bytes by purpose.
    layers
        Null spaces, of memories that have them.
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
        layers = list(layers_of(document["memory"]))
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
        components({name: (kept.size, kept.nbytes) for name, kept in contents.arrays.items()}),
        layers,
        warnings_of(document, layers),
        store.undo.exists(),
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
    tasks: list[dict[str, int | None]] = [{} for _ in range(document["n_tasks"])]
    for label, task, count in zip(labels, document["task_of_class"], counts, strict=True):
        tasks[task][str(label)] = count or None
    return tasks


def name_of(part: Mapping[str, Any]) -> str:
    """What a memory or a head is called."""
    return str(part.get("name") or part["class"])


def components(sizes: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Parameters and bytes of tensors, added up by purpose.

    >>> components({"memory.means_": (6, 24), "memory.decoders_.0.inputs.1.products": (3, 24)})
    {'memory: covariances': (3, 24), 'memory: means': (6, 24)}
    """
    found: dict[str, tuple[int, int]] = {}
    for path, (numbers, taken) in sorted(sizes.items()):
        name = purpose(path)
        before = found.get(name, (0, 0))
        found[name] = before[0] + numbers, before[1] + taken
    return found


def purpose(path: str) -> str:
    """What a tensor is for, from its name."""
    part, *inside = path.split(".")
    if "inputs" in inside:
        return f"{part}: covariances"
    return f"{part}: {inside[0].strip('_').replace('_', ' ')}" if inside else part


def layers_of(memory: Mapping[str, Any]) -> Iterator[Layer]:
    """The null space of each layer after the last task."""
    states = [state["fields"] for state in memory.get("learned", {}).get("layers_", [])]
    thresholds = Thresholds.of(memory.get("settings", {}))
    last = max((state["task"] for state in states), default=0)
    for state in states:
        if state["task"] == last:
            proportion, rank, size = state["proportion"], state["rank"], state["size"]
            used_up = thresholds.exceeded(proportion, rank, size)
            yield Layer(state["decoder"], state["layer"], proportion, rank, size, used_up)


def few_samples(labels: Sequence[Any], counts: Sequence[int]) -> str:
    """A warning of classes that are often missed beside larger ones; empty if there are none.

    >>> few_samples(["hat", "shirt", "bag"], [1, 30, 0])
    "fewer than 3 samples, and so often missed: hat; 'frugalvae update' takes more"
    """
    few = [str(label) for label, count in zip(labels, counts, strict=False) if 0 < count < FEW]
    larger = any(count >= FEW for count in counts)
    if not few or not larger:
        return ""
    names = shortened(few)
    return f"fewer than {FEW} samples, and so often missed: {names}; 'frugalvae update' takes more"


def warnings_of(document: Mapping[str, Any], layers: list[Layer]) -> list[str]:
    """What the owner should know."""
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


def label_named(path: Path, labels: list[Any], typed: str) -> Any:
    """The label that was typed: a name, or a number where labels are numbers."""
    from frugalvae.checks import as_label
    from frugalvae.errors import UnknownClassError, suggestion

    for label in labels:
        if as_label(str(label)) == as_label(typed):
            return label
    raise UnknownClassError(
        f"{path} knows no class {typed!r}.{suggestion(typed, map(str, labels))} "
        f"'frugalvae status {path}' lists all {len(labels)}"
    )
