"""Photographs before they are taught: which are blank, tiny or blurred, and which are copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.console import track
from frugalvae.digests import DIGEST, NONE, digest
from frugalvae.images.decode import LARGE_BYTES, File, alone, decode
from frugalvae.images.photographs import AHEAD, THREADS, Encoded, ahead, encode, reason
from frugalvae.maths.arrays import Array, unit
from frugalvae.parts.protocols import Encoder

SHARPNESS_SIDE = 256  # pixels of the shorter side at which sharpness is measured
TINY = 64  # pixels: a shorter side below is too small to see much
BLANK = 3.0  # of 255: the standard deviation of brightness below which nothing is on it
TILES = 4  # parts in each direction, of which the sharpest counts
BLURRED = 0.2  # of the median sharpness: below, a photograph is blurred
FEWEST = 5  # photographs below which none can be called blurred
NEAR = 0.35  # of the usual distance to the nearest other sample: below, two are one photograph
OTHER_BITS = 0.1  # of a pattern: fewer differ between two copies of a photograph
SAME = 1e-5  # a cosine distance that rounding explains
COARSE = 128  # directions in which most pairs are told apart
BLOCK = 1024  # rows whose distances are computed at a time
MOST_COPIES = 50  # duplicates that are followed for each sample


# --------------------------------------------------------------------------- quality


class Quality(NamedTuple):
    """Shorter side in pixels, standard deviation of brightness, sharpness, and a pattern."""

    side: int
    contrast: float
    sharpness: float
    pattern: Array


class Poor(NamedTuple):
    """What is wrong with a photograph: a kind of finding, how sure it is, and why."""

    kind: str
    sure: float
    why: str


def quality_of(image: Image.Image) -> Quality:
    """Of a photograph in red, green and blue.

    Sharpness is the Laplacian's root mean square, relative to the contrast of all, in the sharpest
    of sixteen tiles: the background of a good photograph may be blurred.

    >>> quality_of(Image.new("RGB", (40, 30), "red"))[:3]
    (30, 0.0, 0.0)
    """
    side = min(image.size)
    grey = image.convert("L")
    if side > SHARPNESS_SIDE:
        scaled = [
            max(SHARPNESS_SIDE, round(length * SHARPNESS_SIDE / side)) for length in image.size
        ]
        grey = grey.resize((scaled[0], scaled[1]), Image.Resampling.BICUBIC, reducing_gap=3.0)
    pixels = np.asarray(grey, np.float32)
    contrast, pattern = float(pixels.std()), pattern_of(grey)
    sharp = 0.0 if side < 3 * TILES else float(_edges(pixels).max() / (contrast + 1))
    return Quality(side, contrast, sharp, pattern)


def pattern_of(grey: Image.Image) -> Array:
    """Where a photograph of 16 by 16 pixels gets brighter from left to right, (256,).

    It is known as a difference hash. Copies of a photograph have nearly the same, whatever their
    size. A blank photograph has no pattern: all is False.
    """
    small = np.asarray(grey.resize((17, 16), Image.Resampling.BOX), np.int16)
    brighter: Array = (small[:, 1:] > small[:, :-1]).ravel() & bool(small.std() >= BLANK)
    return brighter


def _edges(pixels: Array) -> Array:
    """The Laplacian's root mean square in each tile, (4, 4)."""
    inner = pixels[1:-1, 1:-1]
    around = pixels[:-2, 1:-1] + pixels[2:, 1:-1] + pixels[1:-1, :-2] + pixels[1:-1, 2:]
    edges = 4 * inner - around
    height, width = (length // TILES for length in edges.shape)
    tiles = edges[: TILES * height, : TILES * width].reshape(TILES, height, TILES, width)
    sharp: Array = np.sqrt((tiles**2).mean(axis=(1, 3)))
    return sharp


def poor_ones(qualities: Mapping[int, Quality]) -> dict[int, Poor]:
    """Which of some photographs are poor; blurred ones are found by comparing all."""
    found, fine = {}, {}
    for row, quality in qualities.items():
        if quality.contrast < BLANK:
            found[row] = Poor("blank", 1.0, "nothing is on it: it is of one colour")
        elif quality.side < TINY:
            sure = 1 - 0.5 * quality.side / TINY
            found[row] = Poor("tiny", sure, f"its shorter side has {quality.side} pixels")
        else:
            fine[row] = quality.sharpness
    if len(fine) < FEWEST:
        return found
    usual = float(np.median(list(fine.values())))
    for row, sharpness in fine.items():
        share = sharpness / max(usual, 1e-9)
        if share < BLURRED:
            why = f"its edges have {share:.0%} of the usual sharpness"
            found[row] = Poor("blurred", 1 - 0.5 * share / BLURRED, why)
    return found


# --------------------------------------------------------------------------- all of it, once


@dataclass(frozen=True)
class Measured(Encoded):
    """What came of photographs; also digests of all (n,), and the quality of those read."""

    digests: NDArray[np.bytes_]
    qualities: dict[int, Quality]

    @property
    def patterns(self) -> Array:
        """Of those that can be read, (m, bits)."""
        return np.array([self.qualities[place].pattern for place in self.places.tolist()])


def measure(files: Sequence[File], encoder: Encoder, batch_size: int) -> Measured:
    """Read, measure and encode photographs; each file is read once."""
    digests, qualities = np.full(len(files), NONE, DIGEST), dict[int, Quality]()
    side = getattr(encoder, "side", None)

    def read(file: File) -> tuple[bytes, Quality | None, NDArray[np.float32] | str]:
        found = NONE
        try:
            with alone(file.size > LARGE_BYTES):
                content = file.read()
                found = digest(content)
                image = decode(content, side)
            return found, quality_of(image), encoder.prepare(image)
        except Exception as error:  # Pillow and zipfile fail in many ways
            return found, None, reason(error)

    def images() -> Iterator[NDArray[np.float32] | str]:
        results = ahead(read, files, THREADS, AHEAD * batch_size)
        for place, result in zip(track(range(len(files)), "encoding images"), results, strict=True):
            digests[place], quality, image = result
            if quality is not None:
                qualities[place] = quality
            yield image

    encoded = encode(encoder, images(), batch_size)
    return Measured(**vars(encoded), digests=digests, qualities=qualities)


# --------------------------------------------------------------------------- copies


class Twin(NamedTuple):
    """A sample that is nearly the same as an earlier one, and how sure that is."""

    row: int
    of: int
    sure: float


def near_duplicates(features: Array, near: float = NEAR) -> list[Twin]:
    """Samples (n, d) that are nearly the same as an earlier one, each with the first of them.

    Distances are cosines around the mean of all. The limit is relative to how far samples usually
    are from their nearest neighbour, so it depends neither on the encoder nor on its scale.
    A photograph that was made brighter, mirrored or cut a little is found; one that was compressed
    or cut a lot often is not.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(20, 8))
    >>> x[7] = 1.01 * x[3]
    >>> [(twin.row, twin.of) for twin in near_duplicates(x)]
    [(7, 3)]
    """
    if len(features) < 2:
        return []
    rows = np.asarray(features, np.float32)
    around = rows - (rows.mean(axis=0) if len(rows) > 2 else 0)
    centre = np.linalg.norm(around, axis=1) <= SAME * np.linalg.norm(rows, axis=1)  # no direction
    directions = np.column_stack([np.where(centre[:, None], 0, unit(around)), centre])
    directions = directions.astype(np.float32)
    return _twins(directions, max(SAME, near * _usual_distance(directions)))


def same_pixels(patterns: Array) -> list[Twin]:
    """The same of patterns (n, bits) that ``pattern_of`` gives.

    They find what was scaled or compressed, where features see a difference; features find what
    was mirrored or cut. A photograph without a pattern has nothing but False.
    """
    known = np.flatnonzero(patterns.any(axis=1))
    if len(known) < 2:
        return []
    signs = unit(np.where(patterns[known], 1, -1).astype(np.float32))
    places = known.tolist()
    return [Twin(places[row], places[of], sure) for row, of, sure in _twins(signs, 2 * OTHER_BITS)]


def _twins(directions: Array, limit: float) -> list[Twin]:
    """Rows of length one (n, d) that are nearer than a limit to an earlier one."""
    first, sure = np.arange(len(directions)), np.ones(len(directions))
    for rows, others in _candidates(directions, limit):
        distances = 1 - np.einsum("pd,pd->p", directions[rows], directions[others])
        near = np.flatnonzero(distances < limit)
        for place in near[np.unique(rows[near], return_index=True)[1]].tolist():
            row = rows[place]
            first[row] = first[others[place]]
            sure[row] = 1 - max(0.0, float(distances[place])) / limit / 2
    found = np.flatnonzero(first < np.arange(len(directions)))
    return [Twin(int(row), int(first[row]), float(sure[row])) for row in found]


def _candidates(directions: Array, limit: float) -> Iterator[tuple[Array, Array]]:
    """Pairs of rows and earlier ones that may be nearer than a limit, both (p,), in order.

    In a few directions, two rows are at most as far apart as they are in all. So most pairs are
    ruled out there, with a fraction of the work.
    """
    step = max(1, len(directions) // COARSE)
    axes = np.linalg.qr(directions[::step][:COARSE].T)[0]  # (d, m)
    coarse = directions @ axes  # (n, m)
    halves, ones = (coarse**2).sum(axis=1) / 2, np.ones(len(coarse), np.float32)
    left, right = np.column_stack([coarse, halves, ones]), np.column_stack([-coarse, ones, halves])
    for start in track(range(0, len(left), BLOCK), "looking for duplicates"):
        stop = min(start + BLOCK, len(left))
        apart = left[start:stop] @ right[:stop].T  # (block, earlier): bounds of distances
        rows, others = np.divmod(np.flatnonzero(apart < limit + SAME), stop)
        earlier = others < start + rows
        rows, others = rows[earlier], others[earlier]
        followed = np.arange(len(rows)) - np.searchsorted(rows, rows) < MOST_COPIES
        yield start + rows[followed], others[followed]


def _usual_distance(directions: Array, most: int = 256) -> float:
    """The median distance from a sample to the nearest one that is not the same."""
    step = max(1, len(directions) // most)
    distances = 1 - directions[::step] @ directions.T  # (some, n)
    distances[distances < SAME] = np.inf
    nearest = distances.min(axis=1)
    known = nearest[np.isfinite(nearest)]
    return float(np.median(known)) if len(known) else 0.0
