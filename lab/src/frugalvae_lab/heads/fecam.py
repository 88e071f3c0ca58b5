"""FeCAM head: Mahalanobis distances with a covariance of each class's own."""

from __future__ import annotations

import numpy as np

from frugalvae.errors import check_number
from frugalvae.maths.arrays import Array, mixed, stack, unit
from frugalvae.maths.gaussians import RunningSums
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component


class FeCAMHead(HeadDefaults):
    """Nearest class by a Mahalanobis distance in which every class has a covariance; no replay.

    Features are scaled to length one, after a power if they are not negative. A covariance is
    shrunk, divided by the deviations, so that its diagonal is one, and used without its
    determinant. What is kept of it is a root, which has no more rows than the class has samples.
    It is a sum: any batches give what all samples at once give.

    Parameters
    ----------
    diagonal, others
        The weights alpha 1 and 2 of the paper: how much of the mean variance is added to each
        variance, and of the mean covariance to each covariance.
    power
        Tukey's transformation of features, if those of the first task are not negative.

    References
    ----------
    Goswami et al., "FeCAM: Exploiting the Heterogeneity of Class Distributions in Exemplar-Free
    Continual Learning", 2023.
    """

    def __init__(self, *, diagonal: float = 10.0, others: float = 10.0, power: float = 0.5) -> None:
        check_number("diagonal", diagonal, 1e-6)
        check_number("others", others, 0)
        check_number("power", power, 1e-3, 1)
        self.diagonal, self.others, self.power = diagonal, others, power
        self.means_: dict[int, Array] = {}
        self.roots_: dict[int, Array] = {}  # (m, d): rows whose outer products are the scatter
        self.counts_: dict[int, int] = {}
        self.powered_ = 0  # 1 if features were not negative
        self._rules: dict[int, tuple[Array, Array, Array]] = {}  # derived; never stored

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, replay: Replay | None) -> None:
        """Take mean and scatter of each new class."""
        if not self.means_:
            self.powered_ = int(task.features.min() >= 0)
        for label in task.classes:
            self._add(label, RunningSums(), self._mapped(task.of(label)))

    def update(self, task: Task, count: int, replay: Replay | None) -> None:
        """Give exactly what learning old and new samples together would have given."""
        (label,) = task.classes
        before = RunningSums(self.counts_[label], self.means_[label].astype(np.float64))
        self._add(label, before, self._mapped(task.features))

    def _add(self, label: int, before: RunningSums, x: Array) -> None:
        rows = before.deviations(x)
        if before.count:
            rows = np.concatenate([self.roots_[label], rows])
        self.means_[label] = before.mean_with(x).astype(np.float32)
        self.roots_[label] = mixed(rows)
        self.counts_[label] = before.count + len(x)
        self._rules.pop(label, None)

    def forget(self, label: int) -> list[str]:
        """Drop all that is kept of the class."""
        for kept in (self.means_, self.roots_, self.counts_, self._rules):
            kept.pop(label, None)
        return []

    def _mapped(self, features: Array) -> Array:
        """Features (n, d) of length one, float64."""
        x = features.astype(np.float64)
        return unit(np.maximum(x, 0) ** self.power if self.powered_ else x)

    def logits(self, features: Array) -> Array:
        """Minus half the squared distance of each class, (n, k)."""
        x = self._mapped(features)
        rules = [self._rule(label) for label in self.means_]
        weights = np.stack([scales**2 for scales, _, _ in rules])  # (k, d)
        means = stack(self.means_).astype(np.float64)  # (k, d)
        distances: Array = (
            x**2 @ weights.T - 2 * x @ (weights * means).T + (weights * means**2).sum(axis=1)
        )
        for column, (scales, directions, signs) in enumerate(rules):
            scaled = directions * scales  # (m, d)
            along = x @ scaled.T - scaled @ means[column]  # (n, m)
            distances[:, column] -= along**2 @ signs
        return -0.5 * distances

    def _rule(self, label: int) -> tuple[Array, Array, Array]:
        """See :func:`inverse_correlation`."""
        if label not in self._rules:
            root, count = self.roots_[label], self.counts_[label]
            root = root / np.float64(max(1, count - 1)) ** 0.5
            self._rules[label] = inverse_correlation(root, self.diagonal, self.others)
        return self._rules[label]

    def arrays(self) -> dict[str, Array]:
        """Means, roots, and how many samples each class has."""
        return {
            "means": stack(self.means_),
            "roots": np.concatenate(list(self.roots_.values())),
            "counts": np.array([*self.counts_.values(), self.powered_], np.float64),
        }

    def components(self) -> list[Component]:
        """Means and roots; the paper keeps a (d, d) matrix of each class."""
        if not self.means_:
            return []
        dim, classes = len(next(iter(self.means_.values()))), len(self.means_)
        rows = sum(len(root) for root in self.roots_.values())
        return [
            component("head: means", classes * dim),
            component("head: class covariances", classes * dim**2, rows * dim),
            component("head: counts", 0, classes + 1, width=8),
        ]


def inverse_correlation(root: Array, diagonal: float, others: float) -> tuple[Array, Array, Array]:
    """The inverse of a shrunk covariance that is divided by its deviations, by Woodbury.

    The covariance is R^T R for a root R (m, d). The inverse is I - D^T diag(signs) D for
    directions D (m + 1, d), multiplied by ``scales`` (d,) from both sides.

    >>> scales, directions, signs = inverse_correlation(np.array([[2.0, 1.0]]), 1.0, 0.0)
    >>> inverse = np.eye(2) - (directions.T * signs) @ directions
    >>> np.linalg.inv(scales[:, None] * inverse * scales).round(4).tolist()
    [[1.0, 0.4193], [0.4193, 1.0]]
    """
    dim, variances = root.shape[1], (root**2).sum(axis=0)
    level = diagonal * float(variances.mean())
    if level <= 0:  # samples that do not vary: every direction counts alike
        return np.ones(dim), np.zeros((0, dim)), np.zeros(0)
    pairs = max(1, dim * (dim - 1))
    common = others * float((root.sum(axis=1) ** 2).sum() - variances.sum()) / pairs
    base = level - common  # root^T root + base I + common 1 1^T
    rows, weights = root, np.ones(len(root))
    if common:
        rows = np.concatenate([root, np.ones((1, dim))])
        weights = np.append(weights, common)
    middle = rows @ rows.T
    middle[np.diag_indices(len(rows))] += base / weights
    values, vectors = np.linalg.eigh(middle)
    directions = (vectors / np.sqrt(np.abs(values))).T @ rows
    return np.sqrt((variances + level) / base), directions, np.sign(values)
