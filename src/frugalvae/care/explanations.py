"""Why this class? Parts of a photograph are hidden in turn, and what that changes is shown.

Nothing is trained, and any encoder will do: a part that speaks for a class is one without which
the class is less probable (occlusion, Zeiler and Fergus, 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from frugalvae.errors import InputError
from frugalvae.formatting import percent, printable
from frugalvae.images.photographs import encode_photographs, opened
from frugalvae.maths.arrays import Array
from frugalvae.parts.checks import position_of

if TYPE_CHECKING:
    from frugalvae.images.photographs import Photograph
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder

LESSONS = {"learn", "update"}  # events of the history that brought samples
CELLS = 8  # along each side of the photograph
WINDOW = 2  # cells along each side of what is hidden at a time
SIDE = 360  # pixels of the longer side of what is shown and hidden
FOR, AGAINST = (255, 138, 0), (0, 122, 255)  # colours of the two classes
STRENGTH = 0.75  # of the colour where a part matters most
FAINT = 0.15  # of what the strongest part does, below which no part is said to matter
INNER = slice(CELLS // 4, -(CELLS // 4))  # cells that are not at the edges
MARGIN, LINE, TEXT = 12, 22, 15  # pixels around photographs, and of a line of text


@dataclass(frozen=True)
class Explanation:
    """What speaks for one class and what for another.

    Attributes
    ----------
    labels, probabilities
        The class, and the one that it is compared with; as the photograph itself is classified.
    influence
        How much each part changes the odds of the first class against the second: the difference
        of their log-probabilities with the part, less that without it, (rows, columns). Parts
        above zero speak for the first, parts below for the second.
    image
        The photograph, made smaller.
    """

    labels: tuple[Any, Any]
    probabilities: tuple[float, float]
    influence: Array
    image: Image.Image

    @property
    def strongest(self) -> tuple[str, str]:
        """Where in the photograph most speaks for the first class, and for the second."""
        least = FAINT * float(np.abs(self.influence).max())
        return _place(self.influence, least), _place(-self.influence, least)

    def to_json(self, model: Model) -> dict[str, Any]:
        """Both classes, with when the model was taught them, and the influence of each part."""
        both = zip(self.labels, self.probabilities, self.strongest, strict=True)
        return {
            "classes": [
                {"label": y, "probability": p, "part": part, "taught": lessons_of(model, y)}
                for y, p, part in both
            ],
            "influence": [[round(value, 4) for value in row] for row in self.influence.tolist()],
        }

    def picture(self) -> Image.Image:
        """The photograph, and beside it what speaks for each class."""
        width, height = self.image.size
        sheet = Image.new("RGB", (3 * width + 4 * MARGIN, height + LINE + 2 * MARGIN), "white")
        most = max(float(np.abs(self.influence).max()), 1e-9)
        panels = [
            ("photograph", self.image),
            *(
                (f"for {label} ({percent(chance)})", self._tinted(sign / most, colour))
                for label, chance, sign, colour in zip(
                    self.labels, self.probabilities, (1, -1), (FOR, AGAINST), strict=True
                )
            ),
        ]
        draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(TEXT)
        for column, (title, panel) in enumerate(panels):
            left = MARGIN + column * (width + MARGIN)
            sheet.paste(panel, (left, MARGIN + LINE))
            draw.text((left, MARGIN), _fitted(printable(title), width, font), "black", font)
        return sheet

    def _tinted(self, scale: float, colour: tuple[int, int, int]) -> Image.Image:
        """The photograph in grey, with parts that matter in a colour."""
        shares = np.clip(scale * self.influence, 0, 1) * STRENGTH
        mask = Image.fromarray((255 * shares).astype(np.uint8))
        mask = mask.resize(self.image.size, Image.Resampling.BICUBIC)
        grey = self.image.convert("L").convert("RGB")
        return Image.composite(Image.new("RGB", grey.size, colour), grey, mask)


def explain(
    model: Model, encoder: Encoder, photograph: Photograph, against: Any = None
) -> Explanation:
    """Which parts of a photograph speak for its most probable class.

    Parameters
    ----------
    model, encoder
        What was taught, and what makes features of photographs for it.
    photograph
        A path, an image of Pillow, or an array of colours.
    against
        The class to compare with; by default the second most probable.

    Examples
    --------
    >>> from frugalvae.encoders import make_encoder
    >>> from frugalvae.model.model import Model
    >>> encoder = make_encoder("efficientnet", size=64)
    >>> plain = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    >>> model = Model().learn(encode_photographs(encoder, plain), ["rose", "sky"])
    >>> found = explain(model, encoder, plain[0])
    >>> found.labels, found.influence.shape
    (('rose', 'sky'), (8, 8))
    """
    if len(model.classes) < 2:
        raise InputError("an explanation compares two classes, and one is known; teach another")
    compared = None if against is None else position_of(against, model.classes)
    whole = opened(photograph, getattr(encoder, "side", None))  # as who predicts opens it
    image = _smaller(whole)
    logits = model.logits(encode_photographs(encoder, [whole, image, *_hidden(image)]))
    chances = model.calibration.probabilities(logits[:1])[0]
    first, second = np.argsort(-chances, kind="stable")[:2].tolist()
    if compared is not None and compared != first:
        second = compared
    odds = logits[1:, first] - logits[1:, second]  # (1 + windows,)
    classes = model.classes.tolist()
    return Explanation(
        (classes[first], classes[second]),
        (float(chances[first]), float(chances[second])),
        _by_cell(odds[0] - odds[1:]),
        image,
    )


def lessons_of(model: Model, label: Any) -> list[dict[str, Any]]:
    """When a class was taught, and how many samples; names that it had before count, too.

    >>> from frugalvae.model.model import Model
    >>> [lesson["samples"] for lesson in lessons_of(Model().learn([[1.0], [2.0]], ["a", "a"]), "a")]
    [2]
    """
    names = {str(label)} | {str(old) for old, now in model.aliases.items() if now == label}
    return [
        {"when": event.get("when"), "samples": sum(event["classes"].get(n, 0) for n in names)}
        for event in model.history
        if event.get("action") in LESSONS
        and isinstance(event.get("classes"), dict)
        and names & event["classes"].keys()
    ]


def _hidden(image: Image.Image) -> Iterator[Image.Image]:
    """The photograph with each window blurred beyond recognition, row by row."""
    width, height = image.size
    blurred = image.filter(ImageFilter.GaussianBlur(WINDOW * max(width, height) / CELLS / 2))
    for row, column in np.ndindex(CELLS - WINDOW + 1, CELLS - WINDOW + 1):
        box = (
            column * width // CELLS,
            row * height // CELLS,
            (column + WINDOW) * width // CELLS,
            (row + WINDOW) * height // CELLS,
        )
        shown = image.copy()
        shown.paste(blurred.crop(box), box)
        yield shown


def _by_cell(changes: Array) -> Array:
    """The mean change (CELLS, CELLS) over the windows (n,) that hide each cell."""
    steps = CELLS - WINDOW + 1
    total, windows = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    for (row, column), change in zip(np.ndindex(steps, steps), changes.tolist(), strict=True):
        total[row : row + WINDOW, column : column + WINDOW] += change
        windows[row : row + WINDOW, column : column + WINDOW] += 1
    return total / windows


def _place(influence: Array, least: float = 0.0) -> str:
    """Where the influence is, in words; nothing if none is above the least.

    >>> _place(np.eye(8)[:, ::-1] * (np.arange(8) > 5))
    'top right'
    >>> _place(np.eye(8), 2.0)
    ''
    """
    weights = np.maximum(influence, 0) ** 2
    if influence.max() <= least:
        return ""
    steps = (np.arange(CELLS) + 0.5) / CELLS
    down = float(weights.sum(axis=1) @ steps / weights.sum())
    right = float(weights.sum(axis=0) @ steps / weights.sum())
    rows = "top" if down < 0.4 else "bottom" if down > 0.6 else ""
    columns = "left" if right < 0.4 else "right" if right > 0.6 else ""
    inner = weights[INNER, INNER].sum() > 0.4 * weights.sum()
    return f"{rows} {columns}".strip() or ("centre" if inner else "edges")


def _smaller(image: Image.Image) -> Image.Image:
    """An image whose longer side is what is shown."""
    scale = SIDE / max(image.size)
    width, height = (max(CELLS, round(scale * side)) for side in image.size)
    return image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3)


def _fitted(text: str, width: int, font: Any) -> str:
    """As much of a text as fits."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"
