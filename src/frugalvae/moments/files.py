"""What a file holds of the memory ``moments``: its sums, rounded, and checked when read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array, blocks, stack
from frugalvae.moments.evidence import CORRECTIONS, COUNTED, SURE, Evidence
from frugalvae.moments.sums import ClassSums

LARGEST = float(np.finfo(np.float32).max)
MOST = 255  # margins in a bin, in a byte of a file
MOST_SAMPLES = 2**32 - 1  # of a class, in four bytes


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
