"""Image quality: whether a photograph is blank, tiny or blurred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from PIL import Image

from frugalvae.maths.arrays import Array

SIDE = 256  # pixels of the shorter side at which sharpness is measured
TINY = 64  # pixels: a shorter side below is too small to see much
BLANK = 3.0  # of 255: the standard deviation of brightness below which nothing is on it
TILES = 4  # parts in each direction, of which the sharpest counts
BLURRED = 0.2  # of the median sharpness: below, a photograph is blurred
LEAST = 5  # photographs below which none can be called blurred


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
    if side > SIDE:
        scaled = [max(SIDE, round(length * SIDE / side)) for length in image.size]
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
    """Which of some photographs are poor; what is blurred is told by comparing them."""
    found, fine = {}, {}
    for row, quality in qualities.items():
        if quality.contrast < BLANK:
            found[row] = Poor("blank", 1.0, "nothing is on it: it is of one colour")
        elif quality.side < TINY:
            sure = 1 - 0.5 * quality.side / TINY
            found[row] = Poor("tiny", sure, f"its shorter side has {quality.side} pixels")
        else:
            fine[row] = quality.sharpness
    if len(fine) < LEAST:
        return found
    usual = float(np.median(list(fine.values())))
    for row, sharpness in fine.items():
        share = sharpness / max(usual, 1e-9)
        if share < BLURRED:
            why = f"its edges have {share:.0%} of the usual sharpness"
            found[row] = Poor("blurred", 1 - 0.5 * share / BLURRED, why)
    return found
