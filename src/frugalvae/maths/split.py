"""Training and test samples, and held-out parts of the training samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Split:
    """Training and test samples of one data set, with labels."""

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels of the training set, in ascending order."""
        return np.unique(self.y_train)

    def held_out(self, part: float, seed: int) -> Self:
        """A split of the training set only: a part of each class becomes the test set.

        For choosing settings without the test set.
        """
        out = held_out_rows(self.y_train, part, seed)
        return replace(
            self,
            name=f"{self.name} (held out)",
            x_train=self.x_train[~out],
            y_train=self.y_train[~out],
            x_test=self.x_train[out],
            y_test=self.y_train[out],
        )


def held_out_rows(labels: NDArray[Any], part: float, seed: int) -> NDArray[np.bool_]:
    """Which rows to hold out, as a mask (n,): a random part of each class, never all of it.

    At least one row per class is held out, unless the class has only one.

    >>> held_out_rows(np.array([0, 0, 0, 0, 1]), 0.5, seed=0).tolist()
    [True, False, True, False, False]
    """
    rng = np.random.default_rng(seed)
    out = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        count = min(max(round(part * len(rows)), 1), len(rows) - 1)  # some on either side
        out[rows[:count]] = True
    return out
