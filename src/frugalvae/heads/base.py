"""What a head is."""

from __future__ import annotations

from typing import Protocol

from frugalvae.accounting import Component
from frugalvae.arrays import Array
from frugalvae.tasks import Replay, Task


class Head(Protocol):
    """Classifies features among all classes learned so far.

    After each task a head is given the task itself and a replay of every class
    so far, including the task's own. A head that learns from replay ignores the
    task; a head that keeps sums of real features ignores the replay.
    """

    @property
    def classes(self) -> list[int]:
        """The class of each column of :meth:`logits`."""
        ...

    @property
    def needs_every_task(self) -> bool:
        """Whether :meth:`learn` must see each task, because it keeps something of it.

        A head that is fitted anew on replay may skip tasks and come out the same.
        """
        ...

    def meet(self, task: Task) -> None:
        """Note what it must know of new classes beside samples, or refuse them.

        Called for every task, before the memory is trained on it.
        """
        ...

    def learn(self, task: Task, replay: Replay) -> None:
        """Take in a task's classes."""
        ...

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Take in more samples of one class, which is known and had ``count`` before."""
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
        """Every number that has to be kept to predict and to learn on."""
        ...

    def components(self) -> list[Component]:
        """The same numbers counted by purpose."""
        ...
