"""Photographs to try things with: real birds, or pictures that are drawn here."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SHAPES = ("circle", "square", "triangle", "cross")
SIDE = 320


def find_birds() -> Path | None:
    """The folder ``birds`` in the one that FRUGALVAE_DATA names; it needs no laboratory."""
    root = Path(os.environ.get("FRUGALVAE_DATA", "data"))
    found = (place for place in (root / "birds", root / "images/birds") if place.is_dir())
    return next(found, None)


def find_or_draw(folder: Path, *, train: int = 12, test: int = 4) -> tuple[Path, bool]:
    """A folder with ``train/CLASS`` and ``test/CLASS``, and whether the pictures are drawn.

    Birds are looked for in the folder that FRUGALVAE_DATA names.
    """
    birds = find_birds()
    if birds:
        return birds.resolve(), False
    rng = np.random.default_rng(0)
    for split, count in (("train", train), ("test", test)):
        for shape in SHAPES:
            place = folder / split / shape
            place.mkdir(parents=True)
            for number in range(count):
                draw(shape, rng).save(place / f"{number}.jpg", quality=90)
    return folder, True


def draw(shape: str, rng: np.random.Generator) -> Image.Image:
    """A shape of random place, size and colour on a blurred background."""
    noise = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize((SIDE, SIDE)).filter(ImageFilter.GaussianBlur(12))
    size, pen = int(rng.integers(60, 120)), ImageDraw.Draw(picture)
    x, y = (int(rng.integers(size, SIDE - size)) for _ in range(2))
    colour = tuple(int(value) for value in rng.integers(0, 256, 3))
    box = (x - size, y - size, x + size, y + size)
    if shape == "circle":
        pen.ellipse(box, fill=colour)
    elif shape == "square":
        pen.rectangle(box, fill=colour)
    elif shape == "triangle":
        pen.polygon([(x, y - size), (x - size, y + size), (x + size, y + size)], fill=colour)
    else:
        pen.line([(x - size, y), (x + size, y)], fill=colour, width=size // 2)
        pen.line([(x, y - size), (x, y + size)], fill=colour, width=size // 2)
    return picture
