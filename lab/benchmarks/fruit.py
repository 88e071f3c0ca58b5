"""Pictures of fruit that are drawn here: pretty enough to be shown, and nobody's photographs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

SIDE = 320
FINE = 2  # times larger while it is drawn

Pen = ImageDraw.ImageDraw
Colour = tuple[int, int, int]

BROWN, LEAF, DARK = (104, 70, 44), (84, 142, 66), (52, 40, 66)


def apple(pen: Pen, colour: Colour) -> None:
    for x in (-24, 24):
        disc(pen, x, 6, 62, 68, colour)
    pen.line([at(0, -52), at(8, -92)], fill=BROWN, width=7 * FINE)
    disc(pen, 34, -84, 26, 12, LEAF)


def lemon(pen: Pen, colour: Colour) -> None:
    disc(pen, 0, 0, 84, 60, colour)
    for x in (-84, 84):
        disc(pen, x, 0, 16, 14, colour)


def plum(pen: Pen, colour: Colour) -> None:
    disc(pen, 0, 0, 64, 72, colour)
    pen.arc([at(-46, -66), at(10, 66)], -80, 80, fill=DARK, width=4 * FINE)
    pen.line([at(0, -70), at(-4, -98)], fill=BROWN, width=6 * FINE)


def pear(pen: Pen, colour: Colour) -> None:
    disc(pen, 0, 32, 62, 58, colour)
    disc(pen, 0, -36, 36, 46, colour)
    pen.polygon([at(-36, -30), at(36, -30), at(58, 20), at(-58, 20)], fill=colour)
    pen.line([at(0, -78), at(10, -110)], fill=BROWN, width=7 * FINE)


def cherry(pen: Pen, colour: Colour) -> None:
    for x in (-42, 42):
        pen.line([at(x, 24), at(6, -92)], fill=LEAF, width=5 * FINE)
        disc(pen, x, 42, 38, 38, colour)
    disc(pen, 34, -90, 30, 13, LEAF)


def blueberry(pen: Pen, colour: Colour) -> None:
    for x, y in ((-44, 26), (44, 26), (0, -34)):
        disc(pen, x, y, 44, 44, colour)
        disc(pen, x, y - 10, 14, 11, DARK)


def kiwi(pen: Pen, colour: Colour) -> None:
    disc(pen, 0, 0, 80, 74, BROWN)
    disc(pen, 0, 0, 72, 66, colour)
    disc(pen, 0, 0, 22, 19, (236, 240, 206))
    for angle in np.linspace(0, 2 * np.pi, 15)[:-1]:
        disc(pen, 38 * np.cos(angle), 35 * np.sin(angle), 4, 5, DARK)


def carrot(pen: Pen, colour: Colour) -> None:
    pen.polygon([at(-40, -50), at(40, -50), at(4, 106), at(-4, 106)], fill=colour)
    disc(pen, 0, -50, 40, 18, colour)
    for x in (-26, 0, 26):
        pen.line([at(0, -60), at(x, -112)], fill=LEAF, width=9 * FINE)


FRUIT: dict[str, tuple[Callable[[Pen, Colour], None], Colour]] = {
    "apple": (apple, (201, 58, 54)),
    "blueberry": (blueberry, (74, 98, 168)),
    "cherry": (cherry, (160, 26, 52)),
    "kiwi": (kiwi, (140, 178, 66)),
    "lemon": (lemon, (242, 204, 62)),
    "lime": (lemon, (150, 190, 62)),
    "peach": (plum, (236, 152, 104)),
    "pear": (pear, (176, 190, 84)),
    "plum": (plum, (112, 62, 126)),
    "quince": (pear, (228, 196, 74)),
    "carrot": (carrot, (232, 126, 44)),
}


def draw(name: str, rng: np.random.Generator) -> Image.Image:
    """A fruit of random size, place, turn and shade on a soft background."""
    shape, colour = FRUIT[name]
    shade = np.clip(np.array(colour) + rng.normal(0, 9, 3), 0, 255).astype(int).tolist()
    layer = Image.new("RGBA", (SIDE * FINE, SIDE * FINE))
    shape(ImageDraw.Draw(layer), (shade[0], shade[1], shade[2]))
    layer = layer.rotate(float(rng.normal(0, 22)), Image.Resampling.BICUBIC)
    size = int(SIDE * rng.uniform(0.8, 1.15))
    layer = layer.resize((size, size), Image.Resampling.LANCZOS)
    x, y = ((SIDE - size) // 2 + int(rng.integers(-22, 23)) for _ in range(2))
    picture = background(rng)
    shadow = layer.getchannel("A").filter(ImageFilter.GaussianBlur(9)).point(lambda a: a * 2 // 5)
    picture.paste((60, 54, 48), (x + 6, y + 14), shadow)
    picture.paste(layer, (x, y), layer)
    return shine(picture, rng)


def background(rng: np.random.Generator) -> Image.Image:
    """A pale surface, lighter on one side."""
    pale = rng.uniform(222, 244) + rng.normal(0, 8, 3)
    slope = np.linspace(6, -16, SIDE)[:, None, None] * np.ones((1, SIDE, 1))
    return Image.fromarray(np.clip(pale + slope, 0, 255).astype(np.uint8))


def shine(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """The grain of a photograph, and light from above."""
    grain = rng.normal(0, 3, (SIDE, SIDE, 1)) * np.ones(3)
    light = Image.radial_gradient("L").resize((SIDE, SIDE)).point(lambda v: 255 - v // 9)
    grained = np.clip(np.asarray(picture, float) + grain, 0, 255).astype(np.uint8)
    return ImageChops.multiply(Image.fromarray(grained), light.convert("RGB"))


def disc(pen: Pen, x: float, y: float, wide: float, high: float, colour: Colour) -> None:
    pen.ellipse([at(x - wide, y - high), at(x + wide, y + high)], fill=colour)


def at(x: float, y: float) -> tuple[float, float]:
    """A place, seen from the centre."""
    return (SIDE / 2 + x) * FINE, (SIDE / 2 + y) * FINE
