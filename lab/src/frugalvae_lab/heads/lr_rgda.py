"""LR-RGDA head: regularised Gaussian discriminant analysis with low-rank class covariances."""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array, mean_level, mixed, pack, stack, within_shares
from frugalvae.maths.gaussians import Whitener
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component, triangle
from frugalvae_lab.memories.gaussians import Gaussians, Scores

LONE = 1e-4  # the variance of a class of one sample, if its features are of usual size
LEAST_LONE, MOST_LONE = 1e-7, 0.1  # the same as shares of their mean square, if they are not


class LRRGDAHead(HeadDefaults):
    """Bayes' rule with a covariance per class, low-rank, shared and spherical in fixed parts.

    The covariance of class c is ``own`` U_c S_c U_c^T + ``shared`` times the mean covariance of all
    classes + ``ridge`` times the mean variance times I. Only the directions U_c and the mean
    covariance are kept. Bayes' rule follows from them by Woodbury's identity: no (d, d) matrix per
    class. Samples of a known class are learned by learning the class anew from replay, for its
    covariance is not kept in full.

    Parameters
    ----------
    rank
        Directions of each class, U_c; fewer if the class has fewer samples.
    own, shared, ridge
        The weights alpha 1, 2 and 3 of the paper. The last is relative to the mean variance here,
        so that it does not depend on the scale of features.

    References
    ----------
    LR-RGDA, low-rank factorised regularised Gaussian discriminant analysis, 2026:
    https://github.com/raoxuan98-hash/lr_rgda_hopdc.
    """

    shared_: Array | None

    def __init__(
        self, *, rank: int = 64, own: float = 0.2, shared: float = 2.0, ridge: float = 0.5
    ) -> None:
        check_number("rank", rank, 1, 65_536, whole=True)
        check_number("own", own, 0)
        check_number("shared", shared, 0)
        check_number("ridge", ridge, 1e-12)
        self.rank = rank
        self.own, self.shared, self.ridge = own, shared, ridge
        self.means_: dict[int, Array] = {}
        self.directions_: dict[int, Array] = {}  # (at most rank, d): sqrt(S) U^T; lone: none
        self.shared_ = None  # (d, d), the sum of the covariances of all classes
        self.summed_ = 0  # how many classes are in that sum
        self._rule: Scores | None = None  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Take mean, covariance and directions of each class."""
        dim = task.features.shape[1]
        total = np.zeros((dim, dim)) if self.shared_ is None else self.shared_.copy()
        rows = [np.zeros((0, dim))]
        for label in task.classes:
            x = task.of(label).astype(np.float64)
            mean = x.mean(axis=0)
            self.means_[label] = mean.astype(np.float32)
            if len(x) == 1:  # a multiple of the identity
                total[np.diag_indices(dim)] += _lone(mean)
                self.directions_[label] = np.zeros((0, dim), np.float32)
            else:
                rows.append((x - mean) / (len(x) - 1) ** 0.5)  # (n, d): its outer products
                self.directions_[label] = mixed(rows[-1])[: self.rank]
        stacked = np.concatenate(rows)
        total += stacked.T @ stacked
        self.shared_, self.summed_ = total, self.summed_ + len(task.classes)
        self._rule = None

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean and directions."""
        del self.means_[label], self.directions_[label]
        self._rule = None
        return ["the head's shared covariance still contains its samples' covariance"]

    def logits(self, features: Array) -> Array:
        """Log densities (n, k), up to a term that all classes share."""
        rule = self._rule
        if rule is None:
            rule = self._rule = self._derive_rule()
        return rule.of(features.astype(np.float64))

    def _derive_rule(self) -> Scores:
        assert self.shared_ is not None
        mean = self.shared_ / self.summed_
        base = self.shared * mean
        base[np.diag_indices(len(base))] += self.ridge * mean_level(mean.diagonal())
        dim = len(base)
        axes = np.eye(dim)[: -1 - self.rank : -1]  # any axes of the identity lead
        kept = [
            own if len(own) else _lone(self.means_[label]) ** 0.5 * axes
            for label, own in self.directions_.items()
        ]
        directions = np.zeros((len(kept), max(map(len, kept)), dim))
        for row, own in enumerate(kept):
            directions[row, : len(own)] = own
        means = stack(self.means_).astype(np.float64)
        whitener = Whitener(np.linalg.cholesky(base))
        return Gaussians.of(whitener, means, directions, self.own).folded()

    def arrays(self) -> dict[str, Array]:
        """Means, directions, half of the summed covariance, and of how many classes it is."""
        assert self.shared_ is not None
        return {
            "means": stack(self.means_),
            "directions": np.concatenate(list(self.directions_.values())),
            "shared": pack(self.shared_),
            "summed": np.array([self.summed_], np.float64),
        }

    def components(self) -> list[Component]:
        """Means, directions, and half of the shared covariance."""
        if self.shared_ is None:
            return []
        dim = len(self.shared_)
        rows = sum(len(own) for own in self.directions_.values())
        return [
            component("head: means", len(self.means_) * dim),
            component("head: directions", rows * dim),
            component("head: shared covariance", dim**2, triangle(dim) + 1, width=8),
        ]


def _lone(sample: Array) -> float:
    """The variance of a class of this one sample (d,)."""
    square = float(np.mean(sample.astype(np.float64) ** 2))
    return within_shares(LONE, square, LEAST_LONE, MOST_LONE)
