"""Forecast: how often new samples will be classified correctly, from what was held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frugalvae.maths.arrays import Array
from frugalvae.moments.evidence import (
    BINS,
    EDGES,
    GRID,
    Evidence,
    MarginCorrections,
    errors_at_most,
    gap_for_coverage,
    lead_for_error,
    share_above,
)

NEAR, LEAST_DENSITY = 0.04, 0.1  # where margins decide; how many are there, at least
LEAST_NEARER = 1e-4  # by how much fewer samples half of them are than all but the held-out ones
DAMPED = 0.85  # more classes also mean more samples, from which old classes gain
PRIOR = 5.0  # wrong answers due to other classes that are as many as they should be
POOLED = 5.0  # samples that the other classes' margins are worth beside a class's own
UNSURE = 0.4  # of what later classes and more samples have changed: a standard deviation
NINETY = 1.645  # standard deviations on either side that nine in ten are within
ENOUGH = 10  # held-out samples, below which nothing is said of a class, or of all of them


@dataclass(frozen=True)
class Forecast:
    """What to expect of new samples that are like those that were taught.

    Attributes
    ----------
    labels
        The classes.
    counts
        How many samples each has, (k,).
    held
        How many of them were held out, (k,).
    bins
        Their margins; with those of all classes, worth five samples, (k, 32).
    lost
        What margins have lost to classes that came later, (k,).
    gained
        What they have gained from samples that came later, or were held out with them, (k,).
    leads
        Leads of wrong answers of all classes, (16,).
    cost
        What margins lose by a class having few samples, times the root of their number.
    """

    labels: list[Any]
    counts: Array
    held: Array
    bins: Array
    lost: Array
    gained: Array
    leads: Array
    cost: float

    @classmethod
    def of(cls, evidence: Mapping[int, Evidence], counts: Mapping[int, int]) -> Forecast | None:
        """Of classes and their numbers of samples; none if nothing was held out."""
        found = [evidence.get(label, Evidence()) for label in counts]
        bins = np.stack([own.margins for own in found])
        held = bins.sum(axis=1)
        if not held.sum():
            return None
        corrections = MarginCorrections(*np.array([own.corrections for own in found]).T)
        totals = MarginCorrections(*(each.sum() for each in corrections))
        number = np.array(list(counts.values()), np.float64)
        crowding = DAMPED * (totals.observed + PRIOR) / (totals.predicted + PRIOR)
        fewer, lost = (
            (own + POOLED * own.sum() / held.sum()) / (held + POOLED)
            for own in (corrections.fewer, corrections.lost)
        )
        cost = _cost(bins.sum(axis=0), totals)
        pooled = bins + POOLED * bins.sum(axis=0) / held.sum()
        gained = cost * (fewer - number**-0.5)
        leads = np.sum([own.leads for own in found], axis=0)
        return cls(list(counts), number, held, pooled, crowding * lost, gained, leads, cost)

    def to_json(self) -> dict[str, Any]:
        """Plain values: shares of samples to expect correct.

        ``enough`` is whether that may be said of all classes; ``intervals`` has those of which it
        may, with their bounds.
        """
        low, high = self.interval
        bounds = zip(self.labels, self.held.tolist(), self.intervals.tolist(), strict=True)
        return {
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "held_out": int(self.held.sum()),
            "enough": self.enough,
            "classes": {
                str(y): float(p) for y, p in zip(self.labels, self.of_classes, strict=True)
            },
            "intervals": {str(y): within for y, held, within in bounds if held >= ENOUGH},
        }

    def __repr__(self) -> str:
        low, high = self.interval
        said = f"about {self.accuracy:.0%} ({100 * low:.0f} to {100 * high:.0f})"
        return f"<Forecast: {said if self.enough else 'too few samples'}>"

    @property
    def enough(self) -> bool:
        """Whether so many samples were held out that something may be said of all classes."""
        return bool(self.held.sum() >= ENOUGH)

    def with_more(self, samples: int) -> Forecast:
        """If every class had so many samples more: a rough guess, see ``lab/docs/care.md``."""
        nearer = self.counts**-0.5 - (self.counts + samples) ** -0.5
        return replace(self, gained=self.gained + self.cost * nearer)

    @cached_property
    def of_classes(self) -> Array:
        """The share of each class's samples to expect correct, (k,)."""
        return share_above(self.bins, self.lost - self.gained)

    @cached_property
    def accuracy(self) -> float:
        """The share of all samples, if classes are as frequent as they were taught."""
        return float(self._mean(self.of_classes))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Bounds that hold nine times in ten."""
        weights, held = self.counts / self.counts.sum(), np.maximum(self.held, 1)
        shares = (held * self.of_classes + 1) / (held + 2)  # a few that were all right may err
        chance = weights**2 * shares * (1 - shares) / held
        changes = [
            float(self._mean(share_above(self.bins, limits))) - self.accuracy
            for limits in (-self.gained, self.lost)
        ]
        reach = NINETY * float(chance.sum() + UNSURE**2 * (np.array(changes) ** 2).sum()) ** 0.5
        return max(0.0, self.accuracy - reach), min(1.0, self.accuracy + reach)

    @cached_property
    def intervals(self) -> Array:
        """The same for each class, (k, 2): Wilson's score interval, and both corrections."""
        held, share = np.maximum(self.held, 1), self.of_classes
        smaller = 1 / (1 + NINETY**2 / held)
        middle = smaller * (share + NINETY**2 / (2 * held))
        chance = smaller**2 * (share * (1 - share) / held + (NINETY / (2 * held)) ** 2)
        changes = [share_above(self.bins, limits) - share for limits in (-self.gained, self.lost)]
        reach = NINETY * np.sqrt(chance + UNSURE**2 * np.square(changes).sum(axis=0))
        return np.stack([np.maximum(0, middle - reach), np.minimum(1, middle + reach)], axis=1)

    def lead_for_error(self, error: float) -> float:
        """The lead over the second best class from which at most so many answers are wrong.

        Those that later classes have made wrong are taken to lead as others that were wrong.
        """
        return lead_for_error(*self._answers, float(self.held.sum()), error)

    @cached_property
    def least_error(self) -> float:
        """The smallest share of wrong answers that can be promised: fewer samples, larger."""
        return float(errors_at_most(*self._answers, float(self.held.sum())).min())

    @cached_property
    def _answers(self) -> tuple[Array, Array]:
        """Shares of samples that are answered wrongly, and answered, for each lead of GRID."""
        right = self._mean(self._above(GRID))
        wrong = (1 - right[0]) * np.interp(GRID, EDGES[BINS // 2 :], self._led)
        return wrong, wrong + right

    def gap_for_coverage(self, coverage: float) -> float:
        """How far below the best class a set reaches to hold the right one so often."""
        missed = self._mean(1 - self._above(-GRID))
        return gap_for_coverage(missed, float(self.held.sum()), coverage)

    @property
    def _led(self) -> Array:
        """The share of wrong answers that led by more than each edge, (17,)."""
        below = np.concatenate([[0.0], np.cumsum(self.leads)])
        share: Array = 1 - below / max(below[-1], 1.0)
        return share

    def _above(self, leads: Array) -> Array:
        """The share of each class's margins above each lead, (k, leads)."""
        limits = self._cautious
        return np.stack([share_above(self.bins, limits + lead) for lead in leads], axis=1)

    @property
    def _cautious(self) -> Array:
        """What margins have lost, if old classes gained nothing from new samples, (k,)."""
        return self.lost / DAMPED

    def _mean(self, of_classes: Array) -> Array:
        mean: Array = self.counts @ of_classes / self.counts.sum()
        return mean


def _cost(bins: Array, corrections: MarginCorrections) -> float:
    """What margins lose by few samples, from answers that half of the samples made wrong.

    ``bins`` (32,) and ``corrections`` are those of all classes. Accuracy falls short by about as
    much as one over the root of the number of samples.
    """
    held = float(bins.sum())
    if not corrections.halved:
        return 0.0
    nearer = float(corrections.halved_fewer / corrections.halved - corrections.fewer / held)
    if nearer < LEAST_NEARER:  # of pairs either leaves one
        return 0.0
    above = share_above(np.stack([bins, bins, bins]), np.array([-NEAR, 0, NEAR]))
    density = max(float(above[0] - above[2]) / (2 * NEAR), LEAST_DENSITY)
    gained = float(above[1]) - float(corrections.halved_right / corrections.halved)
    return max(0.0, gained) / nearer / density
