"""What a memory need not write itself."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.parts.protocols import Component, Replay, Task
from frugalvae.parts.registry import arguments_of, parameters_of

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory


MOST_REPLAYED = 2**16  # samples of a class that is relearned; more take memory, and change nothing


class Kept:
    """What a part keeps: the attributes whose names end in ``_``.

    They may be arrays, numbers, and dictionaries, lists or dataclasses of these. A dictionary
    whose keys are classes holds what is kept per class. ``classes_`` is not counted, for the
    model has a list of the classes of its own.
    """

    if TYPE_CHECKING:  # a property or an attribute of whoever inherits

        @property
        def classes(self) -> list[int]:
            """The classes known so far, in the order in which they were learned."""
            raise NotImplementedError

    def __repr__(self) -> str:
        """Its class, with the settings that are not the usual ones."""
        try:
            usual, given = parameters_of(type(self)), arguments_of(self)
        except InputError:  # what does not store its settings can be shown all the same
            return object.__repr__(self)
        told = [f"{n}={value!r}" for n, value in given.items() if value is not usual[n].default]
        return f"{type(self).__name__}({', '.join(told)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn asks for them."""
        return arguments_of(self)

    def set_params(self, **settings: Any) -> Self:
        """Change settings of a part that was taught nothing, as scikit-learn does."""
        self.__init__(**arguments_of(self) | settings)  # type: ignore[misc]
        return self

    def arrays(self) -> dict[str, Array]:
        """Every parameter that is kept."""
        found: dict[str, Array] = {}
        for name, value in _kept(self).items():
            found |= _named(name.removesuffix("_"), value, type(self).__name__)
        return found

    def components(self) -> list[Component]:
        """The parameters of each attribute."""
        return _counted(self.arrays()) if self.classes else []

    def forget(self, label: int) -> list[str]:
        """Drop what is kept of a class. A sentence for each attribute that all classes share."""
        return drop_class(self, label)


class MemoryDefaults(Kept):
    """Gives a memory all but ``classes``, ``learn`` and ``sample``.

    Examples
    --------
    >>> class Means(MemoryDefaults):
    ...     def __init__(self):
    ...         self.means_ = {}
    ...     @property
    ...     def classes(self):
    ...         return list(self.means_)
    ...     def learn(self, task, rng):
    ...         self.means_ |= {label: task.of(label).mean(axis=0) for label in task.classes}
    ...     def sample(self, label, count, rng):
    ...         return np.repeat(self.means_[label][None], count, axis=0)
    >>> memory, rng = Means(), np.random.default_rng(0)
    >>> memory.learn(Task(np.eye(2, dtype=np.float32), np.array([0, 1])), rng)
    >>> memory.components()
    [Component(name='means', paper=4, stored=4, bytes=16)]
    >>> memory.update(Task(np.zeros((1, 2), np.float32), np.array([1])), 1, rng)
    >>> memory.means_[1].tolist()
    [0.0, 0.5]
    >>> memory.forget(0), memory.classes
    ([], [1])
    """

    def update(self: Memory, task: Task, count: int, rng: np.random.Generator) -> None:
        """Learn the class anew, from as much replay as it had samples and from the new ones."""
        relearn(self, task, count, rng)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost; here nothing is known of it."""
        raise InputError(
            f"{type(self).__name__} does not know its cost before it is trained; give it "
            "cost(dim, classes, tasks, samples), see docs/extending.md"
        )


def relearn(memory: Memory, task: Task, count: int, rng: np.random.Generator) -> None:
    """Learn a known class anew: from as much replay as it had samples, and its new ones.

    Examples
    --------
    >>> from frugalvae.parts.gaussian import GaussianMemory
    >>> memory, rng = GaussianMemory(), np.random.default_rng(0)
    >>> memory.learn(Task(np.ones((2, 1)), np.array([5, 5])), rng)
    >>> relearn(memory, Task(np.full((2, 1), 9.0), np.array([5, 5])), 2, rng)
    >>> memory.means_[5].tolist()
    [5.0]
    """
    (label,) = task.classes
    replay = memory.sample(label, min(count, MOST_REPLAYED), rng)
    both = np.concatenate([replay, task.features])
    memory.forget(label)
    memory.learn(Task(both, np.full(len(both), label)), rng)


def drop_class(part: Any, label: int) -> list[str]:
    """Drop a class from every dictionary; a sentence for each array that all classes share."""
    kept, kind = _kept(part), type(part).__name__
    by_class = [value for value in kept.values() if isinstance(value, dict)]
    shared = [name for name, value in kept.items() if not isinstance(value, dict) and _big(value)]
    if shared and not any(label in value for value in by_class):
        raise InputError(
            f"{kind} keeps nothing per class, so that one cannot be dropped from "
            f"{' and '.join(shared)}; give it forget(label), see docs/extending.md"
        )
    for value in by_class:
        value.pop(label, None)
    if hasattr(part, "classes_"):
        part.classes_ = [known for known in part.classes_ if known != label]
    return [f"{name} of {kind} was learned from its samples too" for name in shared]


def check_samples(name: str, samples: int | None) -> int:
    """How many samples there will be, where the cost depends on it."""
    if samples is None:
        raise InputError(f"what {name} costs depends on the data; give --samples N")
    return samples


def _kept(part: Any) -> dict[str, Any]:
    """What a part has learned, by attribute."""
    learned = {name: value for name, value in vars(part).items() if name.endswith("_")}
    return {
        name: value
        for name, value in learned.items()
        if not name.startswith("_") and name != "classes_"
    }


def _big(value: Any) -> bool:
    """Whether a value holds more than one number: an array, or several of them."""
    return bool(np.ndim(value)) or isinstance(value, list | tuple) or is_dataclass(value)


def _named(path: str, value: Any, kind: str) -> dict[str, Array]:
    """All arrays in a value, by the path that leads to them."""
    if value is None or isinstance(value, bool | str):
        return {}
    if isinstance(value, int | float):
        return {path: np.array([value], np.float64)}
    if hasattr(value, "detach"):  # a tensor of PyTorch
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        return {path: np.atleast_1d(value)}
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)  # type: ignore[assignment]
    elif is_dataclass(value):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))  # type: ignore[assignment]
    else:
        raise InputError(
            f"{path}_ of {kind} holds a {type(value).__name__}; keep arrays, numbers, or "
            "dictionaries and lists of them there, or give the part arrays()"
        )
    found: dict[str, Array] = {}
    for key, entry in inside:
        found |= _named(f"{path}.{key}", entry, kind)
    shapes = {(array.shape, array.dtype) for array in found.values()}
    if isinstance(value, dict) and len(shapes) == 1 and len(next(iter(shapes))[0]) == 1:
        return {path: np.stack(list(found.values()))}  # a vector per class
    return found


def _counted(arrays: dict[str, Array]) -> list[Component]:
    """A component for each attribute that arrays come from."""
    found: dict[str, Component] = {}
    for path, array in arrays.items():
        name = path.split(".")[0].replace("_", " ")
        before = found.get(name, Component(name, 0, 0, 0))
        found[name] = Component(
            name, before.paper + array.size, before.stored + array.size, before.bytes + array.nbytes
        )
    return list(found.values())


# What a head need not write itself.


class HeadDefaults(Kept):
    """Gives a head all but ``classes``, ``learn`` and ``logits``.

    A head that is fitted anew on replay says ``needs_every_task = False``: then it may be
    fitted once after several tasks.

    Examples
    --------
    >>> class Nearest(HeadDefaults):
    ...     def __init__(self):
    ...         self.means_ = {}
    ...     @property
    ...     def classes(self):
    ...         return list(self.means_)
    ...     def learn(self, task, replay):
    ...         self.means_ |= {label: task.of(label).mean(axis=0) for label in task.classes}
    ...     def logits(self, features):
    ...         means = np.stack(list(self.means_.values()))
    ...         return -((features[:, None] - means) ** 2).sum(axis=2)
    >>> head = Nearest()
    >>> head.learn(Task(np.eye(2), np.array([0, 1])), None)
    >>> head.logits(np.array([[0.9, 0.0]])).argmax(axis=1).tolist(), head.needs_every_task
    ([0], True)
    """

    needs_every_task = True

    def register(self, task: Task) -> None:
        """Nothing: samples are all that it needs of a class."""

    def update(self: Head, task: Task, count: int, replay: Replay) -> None:
        """Learn the class anew, from replay: the memory knows the new samples already."""
        (label,) = task.classes
        drawn = replay.memory.sample(label, count + len(task.features), replay.rng)
        self.forget(label)
        self.learn(Task(drawn, np.full(len(drawn), label)), replay)

    def components(self) -> list[Component]:
        """What it keeps. The paper counts what is kept for replay, not the classifier."""
        return [replace(part, name=f"head: {part.name}", paper=0) for part in super().components()]


class ReplayDefaults(HeadDefaults):
    """The same for a head that is fitted anew on replay and has its classes in ``classes_``."""

    classes_: list[int]
    needs_every_task = False

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    def learn(self, task: Task, replay: Replay) -> None:
        """Fit all classes on replay."""
        raise NotImplementedError

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Fit all classes on replay."""
        self.learn(task, replay)


# What heads share that are weights and biases, fitted on replay.


class Weights(ReplayDefaults):
    """A linear rule: a subclass says how it is fitted, and its ``scale`` from scores to logits."""

    weights_: Array
    bias_: Array
    scale: float

    def forget(self, label: int) -> list[str]:
        """Drop the class's weights."""
        if label not in self.classes_:
            return []
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.weights_, self.bias_ = self.weights_[:, keep].copy(), self.bias_[keep]
        self.classes_ = [known for known in self.classes_ if known != label]
        return ["the head's other weights were fitted while replay of it was there, too"]

    def logits(self, features: Array) -> Array:
        """Scores times ``scale``, (n, k)."""
        return self.scale * (features.astype(np.float64) @ self.weights_ + self.bias_)

    def arrays(self) -> dict[str, Array]:
        """Weights (d, k) and biases (k,)."""
        return {"weights": self.weights_, "bias": self.bias_}
