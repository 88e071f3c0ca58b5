"""Counts, means and scatters of classes as sums: added, merged, taken out, and cut to a size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.formatting import plural
from frugalvae.maths.arrays import (
    Array,
    blocks,
    mixed,
    outer,
    rotate,
    rotate_back,
    signed_root,
    stack,
    sum_of_squares,
    without,
)
from frugalvae.maths.gaussians import RunningSums
from frugalvae.moments.evidence import CORRECTIONS, COUNTED, SURE, Evidence
from frugalvae.moments.rule import Moments

CLASSES_COMPARED = 2048  # of more, some stand for all where only the scale of means counts
ROWS = 4096  # that are added up in one product
ROUNDED_MEAN = 1e-9  # of its square: the scatter that samples seem to have if all are equal
WHOLE = 1e-3  # a class has lost no rows if they say all but this share of its scatter
EVEN = 30  # samples that variances of features are pulled to their mean by: few fit themselves
BY_CLASS = ("counts", "means", "squares", "roots")
LARGEST = float(np.finfo(np.float32).max)
MOST = 255  # margins in a bin, in a byte of a file
MOST_SAMPLES = 2**32 - 1  # of a class, in four bytes


@dataclass
class ClassSums:
    """What is kept of samples of classes.

    Arrays are replaced, never changed in place, so copies can share them.

    Attributes
    ----------
    rooted
        Whether features are replaced by their signed square roots.
    rank
        The number of coordinates that have a covariance. If they are fewer than the features,
        these are rotated, always by the same rotation.
    counts, means
        Number of samples of each class, and the mean of its mapped samples, (d,).
    squares
        Sum of squares of each class's samples around its mean, over all features.
    roots
        Rows of each class, (m, rank), whose outer products add up to its scatter, or to a part.
    scatter
        Scatter of all samples around their class means, (rank, rank); empty while the rows of
        all classes say it.
    other_squares
        The sum of squares in all other coordinates.
    """

    rooted: bool = False
    rank: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    means: dict[int, Array] = field(default_factory=dict)
    squares: dict[int, float] = field(default_factory=dict)
    roots: dict[int, Array] = field(default_factory=dict)
    scatter: Array = field(default_factory=lambda: np.empty((0, 0)))
    other_squares: float = 0.0

    def copy(self) -> ClassSums:
        """Sums of their own, which share arrays."""
        return self._of(lambda kept: dict(kept))

    def restricted_to(self, labels: Collection[int]) -> ClassSums:
        """Sums of some of the classes, and a share of the scatter of all."""
        twin = self._of(lambda kept: {y: own for y, own in kept.items() if y in labels})
        share = twin.freedom / self.freedom
        twin.scatter, twin.other_squares = share * self.scatter, share * self.other_squares
        return twin

    def _of(self, some: Callable[[dict[int, Any]], dict[int, Any]]) -> ClassSums:
        """The same sums with some of the classes."""
        kept: dict[str, Any] = {name: some(getattr(self, name)) for name in BY_CLASS}
        return replace(self, **kept)

    @property
    def dim(self) -> int:
        """The number of features."""
        return len(next(iter(self.means.values())))

    @property
    def is_whole(self) -> bool:
        """Whether the rows of each class say all of its scatter."""
        return not len(self.scatter)

    @property
    def freedom(self) -> int:
        """Samples less their classes, at least one: what scatters are divided by."""
        return max(1, sum(self.counts.values()) - len(self.counts))

    def lost_share(self, label: int) -> float:
        """The share of a class's scatter that its rows do not say, from 0 to 1.

        The rows' outer products never exceed the scatter, and fall short of it by at most this
        share of its trace.
        """
        said = sum_of_squares(self.roots[label])
        return max(0.0, 1 - said / self.squares[label]) if self.squares[label] else 0.0

    # ------------------------------------------------------------ coordinates

    def mapped(self, features: Array) -> Array:
        """Features as they are summed: their square roots, or unchanged."""
        return signed_root(features) if self.rooted else features

    def coordinates(self, rows: Array) -> Array:
        """The coordinates (n, rank) of mapped rows (n, d) that have a covariance."""
        return rows if self.rank == self.dim else rotate(rows, self.rank)

    def parted(self, rows: Array) -> tuple[Array, Array]:
        """Coordinates of mapped rows that have a covariance, and the others."""
        if self.rank == self.dim:
            return rows, rows[:, :0]
        turned = rotate(rows, self.dim)
        return turned[:, : self.rank], turned[:, self.rank :]

    def moments(self) -> Moments:
        """What a rule is derived from."""
        means, others = self.parted(stack(self.means).astype(np.float64))
        sizes = [len(root) for root in self.roots.values()]
        return Moments(
            counts=np.array(list(self.counts.values()), np.float64),
            means=means,
            scatter=None if self.is_whole else self.scatter,
            roots=np.concatenate(list(self.roots.values())),
            owners=np.arange(len(sizes)).repeat(sizes),
            other_means=others,
            other_squares=self.other_squares,
        )

    def moments_of_some(self) -> Moments:
        """The same of some of many classes, without rows: they say how far means are apart."""
        if self.is_whole or len(self.counts) <= CLASSES_COMPARED:
            return self.moments()
        some = list(self.means.values())[:: 1 + len(self.means) // CLASSES_COMPARED]
        means, others = self.parted(np.stack(some).astype(np.float64))
        counts = np.array(list(self.counts.values()), np.float64)
        none = np.empty((0, self.rank)), np.empty(0, int)
        return Moments(counts, means, self.scatter, *none, others, self.other_squares)

    def variances(self) -> tuple[Array, Array]:
        """Variances of features within classes (d,), and of each class relative to them, (k,)."""
        freedom, dim = self.freedom, self.dim
        if self.is_whole:
            rows = np.concatenate(list(self.roots.values()))
            variances = np.einsum("md,md->d", rows, rows, dtype=np.float64) / freedom
        else:
            variances = self.scatter.diagonal() / freedom
        if self.rank < dim:
            scatter = rotate_back(rotate_back(self.scatter, dim).T, dim)
            beside = self.other_squares * (1 - self.rank / dim) / (dim - self.rank)
            variances = (scatter.diagonal() + beside) / freedom
        variances = (freedom * variances + EVEN * variances.mean()) / (freedom + EVEN)
        total = float(variances.sum()) or 1.0
        freedoms = np.maximum(1, np.array(list(self.counts.values())) - 1)
        own = np.array(list(self.squares.values())) / freedoms / total
        return variances, np.where(freedoms > 1, own, 1.0)

    # ---------------------------------------------------------- in and out

    def add(self, samples: Mapping[int, Array]) -> None:
        """Add samples (n, d) of classes, as features."""
        rows = {label: self._add(label, self._exactly(x)) for label, x in samples.items()}
        sizes = {label: len(own) for label, own in rows.items()}
        for labels in batched_classes(sizes):
            coordinates = self._add_scatter(np.concatenate([rows.pop(label) for label in labels]))
            ends = np.cumsum([sizes[label] for label in labels])[:-1]
            for label, new in zip(labels, np.split(coordinates, ends), strict=True):
                old = self.roots.get(label)
                self.roots[label] = new if old is None else np.concatenate([old, new])

    def _add(self, label: int, x: Array) -> Array:
        """Add samples x (n, d) to count, mean and squares; rows that add to the scatter, (., d)."""
        before = self._sums(label)
        rows = before.deviations(x)
        self.counts[label] = before.count + len(x)
        self.means[label] = before.mean_with(x).astype(np.float32)
        self.squares[label] = self.squares.get(label, 0.0) + float((rows**2).sum())
        return rows

    def _add_scatter(self, rows: Array, sign: float = 1.0) -> Array:
        """Add the outer products of rows (n, d) to the scatter, if it is kept; coordinates."""
        coordinates = self.coordinates(rows)  # (n, rank)
        if not self.is_whole:
            self.scatter = self.scatter + sign * (coordinates.T @ coordinates)
            beside = max(0.0, float((rows**2).sum() - (coordinates**2).sum()))
            self.other_squares = max(0.0, self.other_squares + sign * beside)
        return coordinates

    def _sums(self, label: int) -> RunningSums:
        if label not in self.counts:
            return RunningSums()
        return RunningSums(self.counts[label], self.means[label].astype(np.float64))

    def _exactly(self, features: Array) -> Array:
        return self.mapped(features).astype(np.float64)

    def merge(self, other: ClassSums, labels: Mapping[int, int]) -> list[int]:
        """Add other sums, whose class ``label`` is ``labels[label]`` here; classes that changed."""
        if not other.counts:
            return []
        changed = list(labels.values())
        if not self.counts:
            self.rooted, self.rank = other.rooted, other.rank
            self.scatter = np.zeros_like(other.scatter)
        self._check_same_kind(other)
        if not (self.is_whole and other.is_whole):
            rank, other = min(self.rank, other.rank), other.copy()
            changed += list(self.roots) if self.is_whole else []
            for sums in (self, other):
                sums.sum_up()
                sums.lower_rank(rank)
            self.scatter = self.scatter + other.scatter if self.counts else other.scatter
            self.other_squares += other.other_squares
        for label in other.counts:
            self._join(labels[label], other, label)
        return changed

    def _check_same_kind(self, other: ClassSums) -> None:
        if self.counts and self.dim != other.dim:
            raise InputError(f"one memory has {self.dim} features, the other {other.dim}")
        if self.rooted != other.rooted:
            raise InputError(
                "one memory has square roots of features and the other has features as they "
                "are; teach one of them again with root=True or root=False"
            )

    def _join(self, label: int, other: ClassSums, theirs: int) -> None:
        """Join a class of other sums whose scatter was joined already, if there is one."""
        mean, count = other.means[theirs].astype(np.float64), other.counts[theirs]
        rows, squares = [other.roots[theirs]], other.squares[theirs]
        if label in self.counts:
            mine = self._sums(label)
            apart = mean - mine.mean
            gap = (mine.count * count / (mine.count + count)) ** 0.5 * apart[None]
            mean = mine.mean + apart * (count / (mine.count + count))
            squares += self.squares[label] + float((gap**2).sum())
            rows = [self.roots[label], *rows, self._add_scatter(gap)]
        self.counts[label] = self.counts.get(label, 0) + count
        self.means[label] = mean.astype(np.float32)
        self.squares[label] = squares
        self.roots[label] = np.concatenate(rows)

    def join(self, label: int, joined: int) -> None:
        """Make one class of two: ``joined`` becomes a part of ``label``."""
        self._join(label, self, joined)
        for name in BY_CLASS:
            getattr(self, name).pop(joined)

    def subtract(self, label: int, features: Array) -> None:
        """Take out samples of a class that were added before: count, mean and scatter exactly."""
        x = self._exactly(features)
        before, part = self._sums(label), RunningSums(len(x), x.mean(axis=0))
        if len(x) >= before.count:
            raise InputError(
                f"cannot remove {plural(len(x), 'sample')} from a class of {before.count}; to "
                "remove all of them, forget the class"
            )
        left = before.count - len(x)
        mean = part.mean + (before.mean - part.mean) * (before.count / left)
        rows = RunningSums(left, mean).deviations(x)  # what adding them added
        squares = self.squares[label] - float((rows**2).sum())
        root, negative = without(self.roots[label], self.coordinates(rows))
        tolerance = 0.02 * self.squares[label] + ROUNDED_MEAN * float(before.mean @ before.mean)
        if squares < -tolerance or (self.is_whole and negative > tolerance):
            raise InputError(
                f"not all of these were taught ({plural(len(x), 'sample')}): without them the "
                "variance of the class would be negative"
            )
        self._add_scatter(rows, -1.0)
        self.counts[label], self.means[label] = left, mean.astype(np.float32)
        self.squares[label] = max(0.0, squares)
        self.roots[label] = root[: left - 1]  # any further rows are rounding

    def drop(self, label: int) -> None:
        """Drop a class, and its share of the scatter of all classes.

        While rows say all of the scatter, nothing remains. Otherwise its rows are taken out, and
        of what no rows say a part as large as its own.
        """
        root = self.roots.pop(label).astype(np.float64)
        hidden = self.squares.pop(label) - float((root**2).sum())
        del self.counts[label], self.means[label]
        if not self.counts:
            self.scatter, self.other_squares = np.empty((0, 0)), 0.0
        if self.is_whole:
            return
        said = sum((r.astype(np.float64).T @ r for r in self.roots.values()), root.T @ root)
        rest = self.scatter - said
        total = float(rest.trace()) + self.other_squares
        share = min(1.0, max(0.0, hidden / total)) if total > 0 else 0.0
        self.scatter = self.scatter - root.T @ root - share * rest
        self.other_squares *= 1 - share

    def drop_with(self, label: int, features: Array) -> None:
        """Drop a class whose samples are given: what they added is taken out exactly."""
        x = self._exactly(features)
        near = 1e-2 * float(np.abs(x).max())
        if not np.allclose(x.mean(axis=0), self.means[label], rtol=1e-2, atol=near):
            raise InputError("these are not the samples of the class: their mean is another")
        self._add_scatter(x - x.mean(axis=0), -1.0)
        scatter, other = self.scatter, self.other_squares
        self.drop(label)
        if not self.is_whole:
            self.scatter, self.other_squares = scatter, other

    # ------------------------------------------------------------------- size

    def mix(self, labels: Iterable[int]) -> None:
        """Turn rows that may be samples into rows that mix all of them."""
        for label in labels:
            self.roots[label] = mixed(self.roots[label])

    def sum_up(self) -> None:
        """Keep the scatter of all classes as a matrix from now on."""
        if self.is_whole and self.counts:
            parts = batched_classes({label: len(root) for label, root in self.roots.items()})
            scatters = (outer(np.concatenate([self.roots[y] for y in some])) for some in parts)
            self.scatter = sum(scatters, np.zeros((self.rank, self.rank)))

    def lower_rank(self, rank: int) -> None:
        """Keep the first ``rank`` coordinates of the scatter and of all rows."""
        if rank >= self.rank:
            return
        if self.rank == self.dim:  # coordinates were the features themselves so far
            lower = rotate(rotate(self.scatter, rank).T, rank)
            shorter = {label: rotate(own, rank) for label, own in self.roots.items()}
        else:
            lower = self.scatter[:rank, :rank]
            shorter = {label: own[:, :rank] for label, own in self.roots.items()}
        lower = (lower + lower.T) / 2
        self.roots = {y: np.ascontiguousarray(own, np.float32) for y, own in shorter.items()}
        self.other_squares += float(self.scatter.trace() - lower.trace())
        self.scatter, self.rank = lower, rank


def batched_classes(sizes: Mapping[int, int], rows: int = ROWS) -> list[list[int]]:
    """Classes in groups of about so many rows: one product for many small classes.

    >>> batched_classes({7: 3, 8: 2, 9: 4}, rows=4)
    [[7, 8], [9]]
    """
    groups: dict[int, list[int]] = {}
    before = 0
    for label, size in sizes.items():
        groups.setdefault(before // rows, []).append(label)
        before += size
    return list(groups.values())


# --------------------------------------------------------------------------- as arrays of a file


def rounded(sums: ClassSums, evidence: Mapping[int, Evidence], margins: bool) -> dict[str, Array]:
    """Everything that is kept, in as few bytes as cost nothing measurable."""
    largest = max(sums.counts.values())
    if largest > MOST_SAMPLES:
        raise InputError(
            f"a class has {largest:,} samples; a file counts at most {MOST_SAMPLES:,} of a class"
        )
    means, mean_scales = round_rows(stack(sums.means), 2)
    roots, root_scales = round_rows(np.concatenate(list(sums.roots.values())), 1)
    held_out = np.stack([evidence.get(label, Evidence()).sums for label in sums.counts])
    found = {
        "counts": np.array(list(sums.counts.values()), np.uint32),
        "means": means,
        "mean_scales": mean_scales,
        "squares": np.array(list(sums.squares.values()), np.float32),
        "held_out": held_out[:, :SURE],
        "roots": roots,
        "root_scales": root_scales,
        "root_rows": np.array([len(root) for root in sums.roots.values()], np.uint32),
    }
    if margins:
        bins = held_out[:, SURE:-CORRECTIONS]
        scales = np.minimum(1, MOST / np.maximum(bins.max(axis=1, keepdims=True), 1))
        found["margins"] = (scales * bins).round().astype(np.uint8)
        found["shifts"] = held_out[:, -CORRECTIONS:].copy()
        found["shifts"][:, :-1] *= scales
    if not sums.is_whole:
        found["variances"], found["correlations"] = round_symmetric(sums.scatter)
    return found


def restored(state: dict[str, Any]) -> tuple[ClassSums, dict[int, Evidence]]:
    """Sums and evidence of a file, or an error if its arrays do not fit together."""
    labels, arrays = of_kind(state, "labels", list), of_kind(state, "arrays", dict)
    sums = ClassSums(rooted=of_kind(state, "rooted", bool), rank=of_kind(state, "rank", int))
    sums.other_squares = of_kind(state, "other_squares", float)
    if not labels and not arrays:
        return sums, {}
    if {type(label) for label in labels} != {int} or len(set(labels)) < len(labels):
        raise MemoryFileError(f"labels of a MomentMemory are {str(labels)[:40]!r}")
    _check_arrays(arrays, len(labels), sums.rank)
    _check_values(arrays, sums.other_squares)
    means = restore_rows(arrays["means"], arrays["mean_scales"])
    rows = restore_rows(arrays["roots"], arrays["root_scales"])
    roots = np.split(rows, np.cumsum(arrays["root_rows"])[:-1])
    sums.counts = dict(zip(labels, arrays["counts"].tolist(), strict=True))
    sums.means = dict(zip(labels, means, strict=True))
    sums.squares = dict(zip(labels, arrays["squares"].tolist(), strict=True))
    sums.roots = dict(zip(labels, roots, strict=True))
    if "correlations" in arrays:
        sums.scatter = restore_symmetric(arrays["variances"], arrays["correlations"])
    evidence = zip(labels, evidence_of(arrays), strict=True)
    return sums, {label: own for label, own in evidence if own.sums.any()}


def evidence_of(arrays: dict[str, Array]) -> list[Evidence]:
    """The evidence of each class, in the order of a file's labels."""
    kept = [arrays[name] for name in ("held_out", "margins", "shifts") if name in arrays]
    return list(map(Evidence.of_arrays, *kept))


def of_kind(state: dict[str, Any], name: str, kind: type) -> Any:
    """A value of a state, or an error if it is of another type."""
    value = state.get(name)
    if type(value) is not kind:
        raise MemoryFileError(f"{name} of a MomentMemory is {str(value)[:40]!r}")
    return value


def _check_arrays(arrays: dict[str, Array], classes: int, rank: int) -> None:
    """Raise unless arrays have the shapes and types that :meth:`MomentMemory.arrays` gives."""
    if not {"roots", "means"} <= arrays.keys() or arrays["means"].ndim != 2:
        raise MemoryFileError("a MomentMemory without means")
    rows, dim = len(arrays["roots"]), arrays["means"].shape[1]
    expected: dict[str, tuple[tuple[int, ...], type]] = {
        "counts": ((classes,), np.uint32),
        "means": ((classes, dim), np.int16),
        "mean_scales": ((classes,), np.float32),
        "squares": ((classes,), np.float32),
        "held_out": ((classes, SURE), np.float32),
        "roots": ((rows, rank), np.int8),
        "root_scales": ((rows,), np.float32),
        "root_rows": ((classes,), np.uint32),
    }
    if "variances" not in arrays and rank != dim:
        raise MemoryFileError(f"a MomentMemory with {rank} of {dim} coordinates, and no covariance")
    if "margins" in arrays:
        expected["margins"] = (classes, COUNTED), np.uint8
        expected["shifts"] = (classes, CORRECTIONS), np.float32
    if "variances" in arrays:
        expected["variances"] = (rank,), np.float32
        expected["correlations"] = (rank * (rank - 1) // 2,), np.int16
    right = arrays.keys() == expected.keys() and all(
        arrays[name].shape == shape and arrays[name].dtype == kind
        for name, (shape, kind) in expected.items()
    )
    right = right and int(arrays["root_rows"].sum()) == rows and bool(arrays["counts"].all())
    if not right or not 1 <= rank <= dim:
        raise MemoryFileError("the arrays of a MomentMemory do not fit together")


def _check_values(arrays: dict[str, Array], other_squares: float) -> None:
    """Raise if a scale or a sum of squares is what none can be."""
    largest = {"mean_scales": LARGEST / LIMITS[2], "root_scales": LARGEST / LIMITS[1]}
    for name, array in {**arrays, "other_squares": np.array([other_squares])}.items():
        if array.dtype.kind != "f":  # whole numbers are in bounds by their type
            continue
        least = -LARGEST if name == "shifts" else 0.0
        if not ((array >= least) & (array <= largest.get(name, LARGEST))).all():
            raise MemoryFileError(f"{name} of a MomentMemory are negative, or not finite")


# Arrays in fewer bytes: whole numbers of 8 or 16 bits, and a scale for each row.


LIMITS = {1: 127, 2: 32767}  # the largest whole number, by bytes
TYPES = {1: np.int8, 2: np.int16}


def round_rows(rows: Array, size: int) -> tuple[Array, Array]:
    """Rows (n, d) as whole numbers of ``size`` bytes, and the scale (n,) of each row.

    >>> whole, scales = round_rows(np.array([[1.27, -0.5], [0.0, 0.0]]), 1)
    >>> whole.tolist()
    [[127, -50], [0, 0]]
    >>> bool(np.allclose(restore_rows(whole, scales), [[1.27, -0.5], [0.0, 0.0]], atol=0.005))
    True
    """
    limit = LIMITS[size]
    largest = np.abs(rows).max(axis=1, initial=0).astype(np.float64)
    for _ in range(2):  # rounded down, the largest may allow a smaller scale
        scales = _short(np.maximum(largest / limit, np.finfo(np.float32).tiny))
        largest = np.rint(largest / scales) * scales
    whole = np.rint(rows / scales[:, None].astype(np.float64))
    return np.clip(whole, -limit, limit).astype(TYPES[size]), scales


def restore_rows(whole: Array, scales: Array) -> Array:
    """The rows (n, d) that were rounded, float32."""
    rows = whole.astype(np.float32)
    rows *= scales[:, None]
    return rows


def round_symmetric(matrix: Array) -> tuple[Array, Array]:
    """The diagonal (d,) of a covariance or scatter, and its correlations in 16 bits, by rows.

    >>> diagonal, correlations = round_symmetric(np.array([[4.0, 1.0], [1.0, 1.0]]))
    >>> diagonal.tolist(), correlations.tolist()
    ([4.0, 1.0], [16384])
    """
    diagonal = np.maximum(matrix.diagonal(), 0).astype(np.float32)
    deviations = np.sqrt(diagonal.astype(np.float64))
    inverse = np.divide(LIMITS[2], deviations, out=np.zeros(len(matrix)), where=deviations > 0)
    rows = [
        np.rint(matrix[row, row + 1 :] * inverse[row] * inverse[row + 1 :] / LIMITS[2])
        for row in range(len(matrix) - 1)
    ]
    whole = np.concatenate(rows) if rows else np.zeros(0)
    return diagonal, np.clip(whole, -LIMITS[2], LIMITS[2]).astype(np.int16)


def restore_symmetric(diagonal: Array, correlations: Array) -> Array:
    """The matrix (d, d) that was rounded, float64."""
    size, used = len(diagonal), 0
    deviations = np.sqrt(diagonal.astype(np.float64))
    matrix = np.diag(diagonal.astype(np.float64))
    for row in range(size - 1):
        beside = matrix[row, row + 1 :]
        np.divide(correlations[used : used + len(beside)], LIMITS[2], out=beside)
        beside *= deviations[row]
        beside *= deviations[row + 1 :]
        used += len(beside)
    for _, here in blocks(size):  # the other half, without a copy of the whole
        corner = np.triu(matrix[here, here])
        matrix[here, here] = corner + np.triu(corner, 1).T
        matrix[here.stop :, here] = matrix[here, here.stop :].T
    return matrix


def _short(scales: Array) -> Array:
    """Scales rounded up to nine bits, float32: what they multiply is exact, and rounds again."""
    fractions, exponents = np.frexp(scales)
    return np.ldexp(np.ceil(fractions * 512) / 512, exponents).astype(np.float32)
