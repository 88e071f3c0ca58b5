"""Suggest which unlabelled samples would teach most: uncertain, unlike each other, or new.

A sample that is labelled tells most about the samples around it. So samples are chosen one after
the other, each time the one that covers most doubt: the sum, over all samples, of how uncertain
they are times how much nearer the chosen one is to them than those chosen before; all that times
the root of how uncertain it is itself. Samples that look unknown count as entirely uncertain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.care.judge import moments_of
from frugalvae.console import track
from frugalvae.errors import InputError, check_number
from frugalvae.maths.arrays import Array, in_blocks, unit
from frugalvae.model.answers import THRESHOLD
from frugalvae.model.model import Model
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.checks import check_features

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NARROW = 4  # power of the cosine between whitened samples: how far a label tells about others
COVERED = 2048  # samples, the most uncertain ones, whose doubt is covered
SMALLEST_GROUP = 3  # samples that make a group
MOST_GROUPED = 3000  # samples that are grouped
USUAL_SIMILARITY = 0.3  # similarity between samples of a class if none was taught
GROUP_SIMILARITY = 0.6  # of the usual similarity of samples of one class: above, groups become one


@dataclass(frozen=True)
class Suggestion:
    """A sample to label.

    Attributes
    ----------
    row
        Which sample.
    label, probability
        The most probable class.
    runner_up
        The next one; None if there is one class only.
    doubt
        How uncertain it is, from 0 to 1: one less the lead of the class over the next.
    known
        Whether it looks like a taught class at all.
    group
        The number of its group, from 0, if it may belong to a new class with others.
    """

    row: int
    label: Any
    probability: float
    runner_up: Any
    doubt: float
    known: bool
    group: int | None = None

    @property
    def why(self) -> str:
        """In words."""
        if not self.known:
            return "looks like no class that was taught"
        if self.runner_up is None:
            return "more of the only class"
        if self.doubt < 0.3:
            return f"probably {self.label}, and like many that are not sure"
        return f"{self.label} or {self.runner_up}?"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "doubt": round(self.doubt, 4), "why": self.why}


@dataclass
class Suggested:
    """What to label, the most telling first; groups of samples that may be new classes; notes."""

    suggestions: list[Suggestion] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def suggest(model: Model, X: ArrayLike, n: int = 20) -> Suggested:
    """Which of some unlabelled samples would teach a model most.

    Parameters
    ----------
    model
        What was taught.
    X
        Features (m, d).
    n
        How many to suggest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 8)), np.repeat(["cat", "emu"], 30)
    >>> x[np.arange(60), (y == "emu").astype(int)] += 9
    >>> between = (x[:1] + x[59:]) / 2
    >>> model = Model().learn(x[5:55], y[5:55])
    >>> [s.row for s in suggest(model, np.r_[x[:5], between], 1).suggestions]
    [5]
    """
    check_number("n", n, 1, whole=True)
    if not len(model.classes):
        raise InputError("nothing was taught yet; teach some classes first, then ask what to label")
    assert model.memory is not None
    if not model.memory.arrays():
        raise InputError(
            "the memory keeps nothing that samples could be compared with; teach a classifier with "
            "another memory, such as 'moments'"
        )
    features = check_features(X, model.n_features)
    chances = np.concatenate([model.predict_proba(block) for block in in_blocks(features)])
    known = np.concatenate([model.familiarity(block) for block in in_blocks(features)]) >= THRESHOLD
    memory, notes = moments_of(model, model.recipe.generator("suggest", 0))
    doubt, directions = doubts(chances), unit(memory.whitened(features)).astype(np.float32)
    chosen = most_telling(directions, np.where(known, doubt, 1.0), min(n, len(features)))
    groups = group_unknown(directions, np.flatnonzero(~known), memory)
    of_row = {row: number for number, rows in enumerate(groups) for row in rows}
    order = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    labels, suggestions = model.classes.tolist(), []
    for row in chosen:
        first, *rest = order[row].tolist()
        suggestions.append(
            Suggestion(
                row,
                labels[first],
                float(chances[row, first]),
                labels[rest[0]] if rest else None,
                float(doubt[row]),
                bool(known[row]),
                of_row.get(row),
            )
        )
    return Suggested(suggestions, groups, notes)


def doubts(chances: Array) -> Array:
    """One less the lead of the most probable class over the next, (n,).

    >>> doubts(np.array([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.5, 1.0]
    """
    if chances.shape[1] < 2:
        return np.ones(len(chances))
    two = np.partition(chances, -2, axis=1)[:, -2:]
    doubt: Array = 1 - (two[:, 1] - two[:, 0])
    return doubt


def most_telling(directions: Array, doubt: Array, n: int) -> list[int]:
    """Rows that cover most doubt (m,), one after the other; ``directions`` have length one.

    What a row adds never grows as others are chosen. So what it added before is a bound of what
    it adds now, and few rows have to be looked at again.
    """
    covered = np.argsort(-doubt, kind="stable")[:COVERED]
    weights, so_far = doubt[covered].astype(np.float32), np.zeros(len(covered), np.float32)
    targets = np.ascontiguousarray(directions[covered])
    own = np.sqrt(doubt)
    bounds = own * np.concatenate(
        [_nearness(block, targets) @ weights for block in in_blocks(directions, 1024)]
    )
    chosen = list[int]()
    for _ in track(range(n), "choosing what to label"):
        while True:
            best = int(bounds.argmax())
            near = _nearness(directions[best], targets)
            bounds[best] = own[best] * (np.maximum(near - so_far, 0) @ weights)
            if bounds.argmax() == best:
                break
        chosen.append(best)
        bounds[best] = -1.0
        so_far = np.maximum(so_far, near)
    return chosen


def _nearness(rows: Array, targets: Array) -> Array:
    """How much the labels of rows (., d) tell about targets (c, d), from 0 to 1, (., c)."""
    near: Array = np.maximum(rows @ targets.T, 0) ** NARROW
    return near


def group_unknown(directions: Array, rows: Array, memory: MomentMemory) -> list[list[int]]:
    """Rows of samples that look unknown, in groups; the largest first, single ones left out.

    Average linkage of cosines in whitened coordinates. Groups are joined while their samples are
    about as similar as those of a taught class.

    Parameters
    ----------
    directions
        All samples in whitened coordinates, of length one, (n, d).
    rows
        Which of them look unknown.
    memory
        What was taught, to tell how similar samples of one class are.
    """
    rows = rows[:MOST_GROUPED]
    if len(rows) < SMALLEST_GROUP:
        return []
    around = unit(directions[rows] - directions.mean(axis=0))
    distances = np.maximum(1 - around @ around.T, 0)
    labels = average_linkage(distances, 1 - GROUP_SIMILARITY * usual_similarity(memory))
    groups = [rows[labels == label].tolist() for label in np.unique(labels)]
    return sorted(
        (group for group in groups if len(group) >= SMALLEST_GROUP), key=len, reverse=True
    )


def usual_similarity(memory: MomentMemory) -> float:
    """The cosine that two samples of a taught class have on average, in whitened coordinates.

    Of x = mean + noise it is the square of the mean, relative to that of x.
    """
    counts = np.array(list(memory.counts_.values()))
    if len(counts) < 2 or counts.sum() <= len(counts):
        return USUAL_SIMILARITY
    means, noise = memory.whitened_means()
    squares = (means**2).sum(axis=1) - noise / counts
    share = np.maximum(squares, 0) / (np.maximum(squares, 0) + noise)
    return float(np.average(share, weights=counts))


# --------------------------------------------------------------------------- average linkage


def average_linkage(distances: Array, most: float) -> Array:
    """Group numbers (n,) of items with these distances (n, n), by average linkage.

    The two groups that are nearest to each other become one, as long as the mean distance of their
    items is at most ``most``.

    >>> average_linkage(np.abs(np.subtract.outer([0, 1, 9.0], [0, 1, 9.0])), 2.0).tolist()
    [0, 0, 2]
    """
    apart = distances.astype(np.float64)
    np.fill_diagonal(apart, np.inf)
    groups, sizes = np.arange(len(apart)), np.ones(len(apart))
    nearest = apart.argmin(axis=1)  # the nearest group of each
    near = apart[np.arange(len(apart)), nearest]
    while len(apart) > 1 and near.min() <= most:
        one = int(near.argmin())
        one, other = sorted((one, int(nearest[one])))
        share = sizes[one] / (sizes[one] + sizes[other])
        joined = share * apart[one] + (1 - share) * apart[other]
        joined[[one, other]] = np.inf
        apart[one] = apart[:, one] = joined
        apart[other] = apart[:, other] = np.inf
        sizes[one] += sizes[other]
        groups[groups == other] = one
        for row in [*np.flatnonzero(np.isin(nearest, (one, other))).tolist(), one, other]:
            nearest[row] = apart[row].argmin()
            near[row] = apart[row, nearest[row]]
        closer = joined < near
        nearest[closer], near[closer] = one, joined[closer]
    return groups
