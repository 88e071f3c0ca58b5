"""What a memory, a head and an encoder are, and what they are given.

All of them take and give NumPy arrays, whatever they compute with.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from frugalvae.formatting import plural
from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import Shrinkage

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Task:
    """Samples that arrive together.

    Attributes
    ----------
    features
        One row a sample, shape (n, d), float32.
    labels
        The class of each row, (n,): a number that this class keeps for ever.
    text
        Text features of class names, for heads that can start from them.
    names
        Class names, for heads that make prompts of them.

    Examples
    --------
    >>> task = Task(np.eye(3), np.array([5, 2, 5]))
    >>> task.classes
    [2, 5]
    >>> task.of(2).tolist()
    [[0.0, 1.0, 0.0]]
    """

    features: Array
    labels: Array
    text: Mapping[int, Array] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, dim: int) -> Task:
        """A task without classes: nothing new."""
        return cls(np.empty((0, dim), np.float32), np.empty(0, np.int64))

    @property
    def classes(self) -> list[int]:
        """The classes of the task in ascending order."""
        return sorted(set(self.labels.tolist()))

    def split(self, known: Container[int]) -> tuple[list[Task], Task]:
        """A task for each known class, and one of all new classes.

        >>> known, new = Task(np.eye(3), np.array([5, 2, 5])).split({2})
        >>> [task.classes for task in known], new.classes
        ([[2]], [5])
        """
        old = [label for label in self.classes if label in known]
        fresh = ~np.isin(self.labels, old)
        new = Task(self.features[fresh], self.labels[fresh], self.text, self.names)
        return [Task(self.of(label), self.labels[self.labels == label]) for label in old], new

    def some(self, most: int) -> Task:
        """The task, or the part of it with every so many-th class if it has more than ``most``.

        >>> Task(np.eye(3), np.array([5, 2, 7])).some(2).classes
        [2, 7]
        """
        classes = self.classes
        if len(classes) <= most:
            return self
        rows = np.isin(self.labels, classes[:: 1 + len(classes) // most])
        return replace(self, features=self.features[rows], labels=self.labels[rows])

    def of(self, label: int) -> Array:
        """The rows of one class."""
        return self.features[self.labels == label]


@dataclass(frozen=True)
class Replay:
    """Synthetic features of every class that a memory holds.

    Attributes
    ----------
    memory
        Where samples come from.
    rng
        What they are drawn with.
    """

    memory: Memory
    rng: np.random.Generator

    @property
    def classes(self) -> list[int]:
        """All classes that can be drawn, in the order in which they were learned."""
        return self.memory.classes

    def draw(self, per_class: int) -> tuple[Array, Array]:
        """Features (k * per_class, d), and for each the position of its class."""
        samples = [self.memory.sample(label, per_class, self.rng) for label in self.classes]
        return np.concatenate(samples), np.arange(len(samples)).repeat(per_class)

    def everything(self, per_class: int) -> tuple[Array, Array]:
        """Every stored feature once, if the memory stores them all; otherwise as :meth:`draw`."""
        if not hasattr(self.memory, "stored"):
            return self.draw(per_class)
        stored = [self.memory.stored(label) for label in self.classes]
        return np.concatenate(stored), np.arange(len(stored)).repeat([len(x) for x in stored])


class Memory(Protocol):
    """Learns classes task by task and gives back features of any of them.

    A memory is made with its settings alone. It does not know beforehand how many
    classes or tasks will come, nor the feature dimension. All randomness comes from the
    generator that is passed in. It takes and gives NumPy arrays, whatever it computes with.

    :class:`frugalvae.parts.defaults.MemoryDefaults` gives all but ``classes``, ``learn``
    and ``sample``.
    """

    @property
    def classes(self) -> list[int]:
        """The classes known so far, in the order in which they were learned."""
        ...

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Learn a task's classes, none of which is known yet."""
        ...

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Features of one class, shape (count, d), float32."""
        ...

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        """Learn more samples of one class, which is known and had ``count`` before."""
        ...

    def forget(self, label: int) -> list[str]:
        """Drop what is kept of a class. A sentence for each trace of it that remains."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Every parameter that has to be kept, to replay and to learn more classes."""
        ...

    def components(self) -> list[Component]:
        """The same parameters counted by purpose: as the paper counts, and as stored."""
        ...

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost with these settings, before it is trained.

        ``samples`` is how many training samples there will be, if that is known.
        """
        ...


class DensityMemory(Memory, Protocol):
    """A memory that says how probable a feature is under each class."""

    @property
    def density_width(self) -> int:
        """How many coordinates of a feature the density covers."""
        ...

    def log_density(self, features: Array, shrinkage: Shrinkage = ...) -> Array:
        """Logarithm of each class's density at each row, (n, k), classes in their order.

        Up to what is the same for all classes: differences between columns count.
        """
        ...


class TemperedMemory(DensityMemory, Protocol):
    """A memory that knows how sure its densities may be; :func:`is_tempered` tells."""

    counts_: dict[int, int]

    def feature_means(self) -> Array:
        """The mean of each class in the terms of features, (k, d), classes in their order."""
        ...

    def held_out_logits(self, task: Task) -> Array:
        """Logits (n, k) of taught samples, as if they had not been taught."""
        ...

    def logits(
        self, features: Array, shrinkage: Shrinkage = ..., tempering: float | None = None
    ) -> Array:
        """Scores (n, k) whose softmax are class probabilities, classes in their order."""
        ...


def is_tempered(memory: Memory) -> TypeGuard[TemperedMemory]:
    """Whether a memory's logits need no temperature; it may be empty."""
    return all(
        hasattr(type(memory), name) for name in ("logits", "held_out_logits", "feature_means")
    )


@runtime_checkable
class MeanMemory(Memory, Protocol):
    """A memory that knows the mean of each class without drawing samples."""

    def mapped(self, features: Array) -> Array:
        """Features in the terms in which it has means, such as their roots."""
        ...

    def mapped_means(self) -> Array:
        """The mean of each class's features in these terms, (k, d), classes in their order."""
        ...


@runtime_checkable
class TypicalityMemory(Memory, Protocol):
    """A memory that knows how typical a sample is of its class."""

    def typicality(self, features: Array) -> Array:
        """How typical rows (n, d) are of the most probable class, (n,)."""
        ...

    def held_out_typicality(self, task: Task) -> Array:
        """The same of taught samples, as if they had not been taught, (m,).

        Of a task that was just taught, it may be that of samples held out then.
        """
        ...


@runtime_checkable
class VarianceMemory(MeanMemory, Protocol):
    """A memory that knows variances within classes, too."""

    def mapped_variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        ...


class Head(Protocol):
    """Classifies features among all classes learned so far.

    After each task a head is given the task itself and a replay of every class
    so far, including the task's own. A head that learns from replay ignores the
    task; a head that keeps sums of real features ignores the replay.

    :class:`frugalvae.parts.defaults.HeadDefaults` gives all but ``classes``, ``learn`` and
    ``logits``.
    """

    @property
    def classes(self) -> list[int]:
        """The class of each column of :meth:`logits`."""
        ...

    @property
    def needs_every_task(self) -> bool:
        """Whether :meth:`learn` must see each task, because it keeps something of it.

        A head that is fitted anew on replay may skip tasks: the outcome is the same.
        """
        ...

    def register(self, task: Task) -> None:
        """Record class metadata, such as names or text features, or raise.

        Called for every task, before the memory is trained on it.
        """
        ...

    def learn(self, task: Task, replay: Replay) -> None:
        """Learn a task's classes."""
        ...

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Learn more samples of one class, which is known and had ``count`` before."""
        ...

    def forget(self, label: int) -> list[str]:
        """Drop a class. A sentence for each trace of it that remains.

        Logits of the other classes stay what they were. A head that was deferred may not
        know the class yet.
        """
        ...

    def logits(self, features: Array) -> Array:
        """Scores (n, k) whose softmax are class probabilities, float64."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Every parameter that has to be kept, to predict and to learn more classes."""
        ...

    def components(self) -> list[Component]:
        """The same parameters counted by purpose."""
        ...


class Encoder(Protocol):
    """A frozen, pretrained encoder. It can be pickled, to go to another process.

    :class:`frugalvae.encoders.defaults.EncoderDefaults` gives all but ``dim`` and ``encode``.
    """

    @property
    def dim(self) -> int:
        """Feature dimension."""
        ...

    @property
    def side(self) -> int | None:
        """What the shorter side of an image is resized to; None if every pixel counts.

        Photographs are decoded no larger than that needs.
        """
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """What tells features of this encoder from those of another, as JSON can hold it.

        Its name, the model's name, the preprocessing, and a digest of the weights.
        """
        ...

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """An image in red, green and blue as the network takes it, (3, height, width).

        May be called from several threads at once.
        """
        ...

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim) of prepared images (n, 3, height, width)."""
        ...

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """A feature (k, dim) of each class's name, if the encoder can read."""
        ...

    def to(self, device: str | None) -> Encoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        ...


# --------------------------------------------------------------------------- cost


@dataclass(frozen=True)
class Component:
    """A part of a memory, in parameters and bytes.

    The paper counts parameters, and some twice: four statistics per class and dimension where two
    suffice, and both halves of symmetric matrices. A test compares what ``cost()`` says
    with the arrays that are kept after training.

    Attributes
    ----------
    name
        What it is for.
    paper
        Parameters, as the paper counts them.
    stored
        Parameters that are stored.
    bytes
        The bytes that those take.
    """

    name: str
    paper: int
    stored: int
    bytes: int


@dataclass(frozen=True)
class MemoryReport:
    """What a memory holds and what it costs.

    >>> parts = [component("means", 6), component("covariances", 9, 6, width=8)]
    >>> report = MemoryReport("shared", classes=2, tasks=1, components=parts)
    >>> report.paper, report.stored, report.bytes
    (15, 12, 72)
    """

    memory: str
    classes: int
    tasks: int
    components: Sequence[Component]

    @property
    def paper(self) -> int:
        """All parameters, as the paper counts them."""
        return sum(part.paper for part in self.components)

    @property
    def stored(self) -> int:
        """All parameters that are stored."""
        return sum(part.stored for part in self.components)

    @property
    def bytes(self) -> int:
        """The bytes that those take."""
        return sum(part.bytes for part in self.components)

    def to_json(self) -> dict[str, Any]:
        """Plain values, totals included."""
        totals = {"paper": self.paper, "stored": self.stored, "bytes": self.bytes}
        return {**asdict(self), "components": [asdict(p) for p in self.components], **totals}

    def __str__(self) -> str:
        rows = [(part.name, part.paper, part.stored, part.bytes) for part in self.components]
        rows.append(("total", self.paper, self.stored, self.bytes))
        width = max(len(row[0]) for row in rows)
        lines = [
            f"{self.memory}: {plural(self.classes, 'class')} in {plural(self.tasks, 'task')}",
            f"{'':{width}}  {'as the paper counts':>19}  {'really stored':>13}  {'bytes':>13}",
        ]
        lines += [f"{n:{width}}  {p:>19,}  {s:>13,}  {b:>13,}" for n, p, s, b in rows]
        return "\n".join(lines)


def component(name: str, paper: int, stored: int | None = None, width: int = 4) -> Component:
    """A component whose parameters take ``width`` bytes each."""
    stored = paper if stored is None else stored
    return Component(name, paper, stored, stored * width)


def triangle(size: int) -> int:
    """Distinct entries of a symmetric matrix."""
    return size * (size + 1) // 2
