"""Arrays: small functions that several modules share, symmetric matrices, and the device."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import DeviceError

if TYPE_CHECKING:
    import torch

#: An array of any numeric type; its shape is noted where it is used.
Array: TypeAlias = NDArray[Any]

#: Of squares whose largest is below, the smaller ones would be zero in float32, or lose digits.
LEAST_FLOAT32 = 1e-28
SMALL = 64  # size up to which a triangular system is solved by LAPACK's general solver
BLOCK = 128  # rows or columns of a triangular matrix that are worked on at once
_requested: ContextVar[str | None] = ContextVar("frugalvae_device", default=None)


def stack(rows: Mapping[int, Array]) -> Array:
    """The values of a per-class dictionary as one array, one row per class.

    >>> stack({7: np.zeros(2), 9: np.ones(2)}).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return np.stack(list(rows.values())) if rows else np.empty(0, np.float32)


def power_of_two(values: Array, axis: int | None = None) -> Array:
    """The largest power of two that is at most the largest magnitude; of zeros, one half.

    Dividing by it changes no digit. Afterwards squares neither vanish nor become infinite.

    >>> float(power_of_two(np.array([3.0, -5.0]))), float(power_of_two(np.zeros(2)))
    (4.0, 0.5)
    """
    largest = np.abs(values).max(axis=axis, keepdims=axis is not None, initial=0)
    return np.ldexp(np.ones_like(largest), np.frexp(largest)[1] - 1)


def compact(values: Array) -> Array:
    """Squares as a memory keeps them: float32, or float64 where that would lose them to zero.

    >>> compact(np.array([4.0, 0.0])).dtype, compact(np.array([1e-60, 0.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    largest = np.abs(values).max(initial=0)
    return values.astype(np.float64 if 0 < largest < LEAST_FLOAT32 else np.float32)


def sum_of_squares(values: Array) -> float:
    """In float64: squares of small float32 would vanish.

    >>> sum_of_squares(np.float32([1e-30, 0.0])) > 0
    True
    """
    return float((values.astype(np.float64) ** 2).sum())


def unit(vectors: Array) -> Array:
    """Rows scaled to length one, whatever their scale; a row of zeros stays zero.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    scaled = vectors / power_of_two(vectors, axis=-1)
    lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)


def signed_root(features: Array) -> Array:
    """The square root of each feature, with its sign.

    >>> signed_root(np.array([4.0, -9.0])).tolist()
    [2.0, -3.0]
    """
    return np.copysign(np.sqrt(np.abs(features)), features)


def squared_distances(points: Array, others: Array) -> Array:
    """Squared distance of each of ``points`` (n, d) from each of ``others`` (k, d): (n, k).

    >>> squared_distances(np.array([[1.0, 0.0]]), np.array([[1.0, 3.0], [1.0, 0.0]])).tolist()
    [[9.0, 0.0]]
    """
    centre = others.mean(axis=0)  # smaller values lose fewer digits
    points, others = points - centre, others - centre
    squares = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.maximum(squares - 2 * points @ others.T, 0)


def softmax(logits: Array) -> Array:
    """Probabilities (n, k) of logits (n, k).

    >>> softmax(np.array([[0.0, 0.0, -1e9]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def logsumexp(logits: Array) -> Array:
    """Logarithm (n,) of the summed exponentials of each row.

    >>> round(float(logsumexp(np.array([[1000.0, 1000.0]]))[0]), 3)
    1000.693
    """
    largest = logits.max(axis=1)
    return largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))


def one_hot(positions: Array, count: int) -> Array:
    """Rows (n, count) of zeros with a one at each position, float64.

    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return (np.asarray(positions)[:, None] == np.arange(count)).astype(np.float64)


def columns_of(labels: Array, classes: Iterable[int]) -> Array:
    """The column of each label, (n,), where columns are of these classes.

    >>> columns_of(np.array([9, 7, 9]), [7, 9]).tolist()
    [1, 0, 1]
    """
    column = {label: number for number, label in enumerate(classes)}
    return np.array([column[label] for label in labels.tolist()], np.int64)


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


def in_blocks(features: Array, rows: int = 8192) -> Iterable[Array]:
    """Features in blocks of rows, so that results of each block need less memory."""
    return (features[start : start + rows] for start in range(0, len(features), rows))


def side_by_side(rows: Array, others: Array) -> Array:
    """Rows (n, a) with others (n, b) behind them, (n, a + b); no copy if there are none.

    >>> side_by_side(np.array([[1, 2]]), np.array([[3]])).tolist()
    [[1, 2, 3]]
    """
    return np.concatenate([rows, others], axis=1) if others.shape[1] else rows


# --------------------------------------------------------------------------- matrices


def pack(symmetric: Array) -> Array:
    """The upper triangle of a symmetric matrix as a vector.

    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    rows = [row[start:] for start, row in enumerate(symmetric)]
    return np.concatenate(rows) if rows else symmetric.ravel()


def unpack(triangle: Array) -> Array:
    """The symmetric matrix whose upper triangle was packed.

    >>> unpack(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    size, used = int((2 * len(triangle)) ** 0.5), 0
    if triangle.shape != (size * (size + 1) // 2,):
        raise ValueError(f"an array of shape {triangle.shape} is no packed triangle")
    symmetric = np.empty((size, size), triangle.dtype)
    for start in range(size):
        row = triangle[used : used + size - start]
        symmetric[start, start:] = symmetric[start:, start] = row
        used += size - start
    return symmetric


def square_root(covariance: Array) -> Array:
    """F (d, rank) with F F^T = covariance, float32.

    >>> np.abs(square_root(np.array([[4.0, 0.0], [0.0, 0.0]]))).tolist()
    [[2.0], [0.0]]
    """
    values, vectors = np.linalg.eigh(covariance)
    rounding = len(values) * np.finfo(values.dtype).eps * values[-1]
    kept = values > rounding
    return (vectors[:, kept] * np.sqrt(values[kept])).astype(np.float32)


def add_ridge(matrix: Array, amount: float) -> Array:
    """The matrix with ``amount`` times its mean diagonal entry added to the diagonal.

    The ridge is relative, so it does not depend on the scale of the matrix. A matrix of zeros
    becomes ``amount`` times the identity.

    >>> add_ridge(np.array([[3.0, 0.0], [0.0, 1.0]]), 0.5).tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    ridged: Array = matrix.copy()
    ridged[np.diag_indices(len(matrix))] += amount * mean_level(matrix.diagonal())
    return ridged


def mean_level(variances: Array) -> float:
    """The mean variance, which ridges are relative to; one where nothing varies.

    >>> mean_level(np.array([1.0, 3.0])), mean_level(np.zeros(2))
    (2.0, 1.0)
    """
    level = float(np.mean(variances, dtype=np.float64))
    return level if level > 0 else 1.0


def within_shares(amount: float, level: float, least: float, most: float) -> float:
    """An amount that suits data of about ``level``, kept within shares of the level.

    For constants from papers that are absolute: they stay what they are as long as they mean what
    they were meant to, and follow the scale of the data beyond.

    >>> within_shares(1e-6, 1.0, 1e-9, 1e-3), within_shares(1e-6, 1e-12, 1e-9, 1e-3)
    (1e-06, 1e-15)
    """
    return min(max(amount, least * level), most * level) if level > 0 else amount


def solve_lower(lower: Array, right: Array) -> Array:
    """X with ``lower @ X = right``, for a lower triangular matrix (d, d).

    Solved by halves, so that most of the work is matrix products.

    >>> solve_lower(np.array([[2.0, 0.0], [4.0, 1.0]]), np.array([[2.0], [5.0]])).tolist()
    [[1.0], [1.0]]
    """
    size = len(lower)
    if size <= SMALL:
        return np.linalg.solve(lower, right)
    half = size // 2
    first = solve_lower(lower[:half, :half], right[:half])
    second = solve_lower(lower[half:, half:], right[half:] - lower[half:, :half] @ first)
    return np.concatenate([first, second])


def solve_upper(lower: Array, right: Array) -> Array:
    """X with ``lower.T @ X = right``, for a lower triangular matrix (d, d).

    >>> solve_upper(np.array([[2.0, 0.0], [4.0, 1.0]]), np.array([[6.0], [1.0]])).tolist()
    [[1.0], [1.0]]
    """
    return solve_lower(lower.T[::-1, ::-1], right[::-1])[::-1]  # reversed, lower.T is lower


def solve_positive(matrix: Array, right: Array) -> Array:
    """X with ``matrix @ X = right``; a matrix that is not positive definite is an error.

    >>> solve_positive(np.array([[4.0, 2.0], [2.0, 2.0]]), np.array([[6.0], [4.0]])).tolist()
    [[1.0], [1.0]]
    """
    lower = np.linalg.cholesky(matrix)
    return solve_upper(lower, solve_lower(lower, right))


def inverse_root(matrix: Array) -> Array:
    """The lower triangular L^-1 (d, d), where ``matrix`` is L L^T; not positive is an error.

    By blocks, so that most of the work is matrix products, none of them with zeros.

    >>> inverse_root(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    size, root, inverse = len(matrix), matrix.copy(), np.zeros_like(matrix)
    for start, here in blocks(size):
        root[start:, here] -= root[start:, :start] @ root[here, :start].T
        corner = np.tril(np.linalg.inv(np.linalg.cholesky(root[here, here])))
        root[here.stop :, here] = root[here.stop :, here] @ corner.T
        inverse[here, here] = corner
        for first, column in blocks(start):
            inner = root[here, first:start] @ inverse[first:start, column]
            inverse[here, column] = -corner @ inner
    return inverse


def blocks(size: int) -> Iterator[tuple[int, slice]]:
    """Where each block of rows or columns starts, and its slice.

    >>> list(blocks(200))
    [(0, slice(0, 128, None)), (128, slice(128, 200, None))]
    """
    return ((start, slice(start, min(start + BLOCK, size))) for start in range(0, size, BLOCK))


def principal_axes(rows: Array) -> tuple[Array, Array]:
    """Eigenvalues (j,) of ``rows.T @ rows`` above rounding, and eigenvectors (d, j).

    >>> values, axes = principal_axes(np.array([[3.0, 0.0], [1.0, 0.0]]))
    >>> values.tolist(), np.abs(axes).tolist()
    ([10.0], [[1.0], [0.0]])
    """
    if len(rows) < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-10 * values.max(initial=1e-300)
        return values[kept], rows.T @ vectors[:, kept] / np.sqrt(values[kept])
    values, vectors = np.linalg.eigh(rows.T @ rows)
    kept = values > 1e-10 * values.max(initial=1e-300)
    return values[kept], vectors[:, kept]


# Roots: rows whose outer products add up to a scatter.


def mixed(rows: Array) -> Array:
    """As few rows with the same outer products as there can be, float32; each mixes all."""
    values, axes = principal_axes(rows.astype(np.float64))
    return (np.sqrt(values)[:, None] * axes.T)[::-1].astype(np.float32)


def leading(rows: Array, count: int) -> Array:
    """The combinations (n, count) of rows (n, r) that are longest, the longest first, float32.

    >>> rows = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> np.abs(leading(rows, 1).T @ rows).round(3).tolist()
    [[0.0, 3.162]]
    """
    if len(rows) <= rows.shape[1]:
        vectors = np.linalg.eigh((rows @ rows.T).astype(np.float64))[1]
        return vectors[:, ::-1][:, :count].astype(np.float32)
    values, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))  # as (r, r) is smaller
    values, axes = values[::-1][:count], axes[:, ::-1][:, :count]
    combinations: Array = rows @ (axes / np.sqrt(np.maximum(values, 1e-30))).astype(np.float32)
    return combinations


def outer(rows: Array) -> Array:
    """The sum of outer products of rows (n, d), in float64."""
    rows = rows.astype(np.float64)
    return rows.T @ rows


def without(root: Array, rows: Array) -> tuple[Array, float]:
    """A root of what a root's outer products are without those of rows, and what was negative."""
    both = np.concatenate([root, rows]).astype(np.float64)
    signs = np.repeat([1.0, -1.0], [len(root), len(rows)])
    basis, triangle = np.linalg.qr(both.T)  # (r, q), (q, n)
    values, vectors = np.linalg.eigh((triangle * signs) @ triangle.T)
    kept = values > 1e-10 * max(values[-1], 1e-300)
    left = np.sqrt(values[kept])[:, None] * (basis @ vectors[:, kept]).T
    return left[::-1].astype(np.float32), float(-values[values < 0].sum())


# A fixed rotation that spreads each feature over all coordinates.


class Rotation(NamedTuple):
    """Signs of features, and the order, scales and phases of frequencies, (d,) each."""

    signs: Array
    order: Array
    scales: Array
    phases: Array


@functools.lru_cache(maxsize=4)
def rotation(dim: int) -> Rotation:
    """The rotation of ``dim`` features."""
    raw = np.random.PCG64(0).random_raw(2 * dim)  # raw bits: the same in every version of NumPy
    scales = np.full(dim, (0.5 / dim) ** 0.5)
    scales[0] *= 0.5**0.5
    phases = np.exp(-0.5j * np.pi / dim * np.arange(dim))
    signs = 1.0 - 2.0 * (raw[:dim] >> np.uint64(63))
    return Rotation(signs, np.argsort(raw[dim:], kind="stable"), scales, phases)


def rotate(rows: Array, rank: int) -> Array:
    """The first ``rank`` coordinates (n, rank) of rows (n, d) after the rotation, float64.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate(x, 5) @ rotate(x, 5).T, x @ x.T)  # inner products stay
    True
    """
    dim = rows.shape[1]
    signs, order, scales, phases = rotation(dim)
    signed = rows * signs
    even = np.concatenate([signed, signed[:, ::-1]], axis=1)  # even: a cosine transform
    kept = order[:rank]
    return (np.fft.rfft(even)[:, kept] * phases[kept]).real * scales[kept]


def rotate_back(coordinates: Array, dim: int) -> Array:
    """Rows (n, dim) with the given first coordinates (n, rank), and zeros for the others.

    >>> x = np.random.default_rng(0).normal(size=(2, 5))
    >>> np.allclose(rotate_back(rotate(x, 5), 5), x)
    True
    """
    signs, order, scales, phases = rotation(dim)
    kept = order[: coordinates.shape[1]]
    spectrum = np.zeros((len(coordinates), dim + 1), complex)
    spectrum[:, kept] = coordinates / scales[kept] * phases[kept].conj()
    return np.fft.irfft(spectrum, 2 * dim)[:, :dim] * signs


# --------------------------------------------------------------------------- the device of PyTorch


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Use this device inside the block; ``None`` uses a GPU if there is one."""
    token = _requested.set(device)
    try:
        yield
    finally:
        _requested.reset(token)


def find_device(device: str | None = None) -> torch.device:
    """The named device; else that of :func:`computing_on`; else a GPU if there is one.

    >>> with computing_on("cpu"):
    ...     find_device()
    device(type='cpu')
    """
    import torch

    name = device or _requested.get() or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"device is {name!r}, which cannot be used here ({error}); try device='cpu'"
        ) from error
