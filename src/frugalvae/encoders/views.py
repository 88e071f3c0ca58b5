"""Several views of each photograph, whose features are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from frugalvae.encoders import VIEWS
from frugalvae.errors import check_choice
from frugalvae.maths.arrays import unit
from frugalvae.parts.protocols import Encoder

NEAR = 0.8  # how much of each side is seen from nearer


class Views:
    """An encoder that looks at each photograph two or four times, and averages what it sees.

    Of one photograph, a network makes a feature that depends on how large the object is and
    on where it looks to. The average depends on that less, which is worth most where a
    class has few photographs. It takes two or four times as long, and no byte more. Features
    have length one: those of every view, so that all count the same, and their average.

    Parameters
    ----------
    encoder
        What looks.
    views
        2: the photograph, and its middle (80 % of each side) mirrored. 4: both of them, and
        both mirrored.

    Examples
    --------
    >>> from frugalvae.encoders.defaults import EncoderDefaults
    >>> class LeftAndRight(EncoderDefaults):
    ...     dim, size = 2, 10
    ...     def encode(self, batch):
    ...         return batch[:, 0, 0, [0, -1]]
    >>> half = Image.new("RGB", (10, 10))
    >>> half.paste("white", (0, 0, 5, 10))
    >>> for encoder in (LeftAndRight(), Views(LeftAndRight(), 4)):
    ...     encoder.encode(encoder.prepare(half)[None]).astype(float).round(2).tolist()
    [[1.0, 0.0]]
    [[0.71, 0.71]]
    """

    def __init__(self, encoder: Encoder, views: int = 2) -> None:
        check_choice("views", views, VIEWS[1:])
        self.encoder, self.views = encoder, views

    @property
    def dim(self) -> int:
        """Feature dimension."""
        return self.encoder.dim

    @property
    def side(self) -> int | None:
        """What the shorter side of a photograph needs, so that its middle is sharp, too."""
        side: int | None = getattr(self.encoder, "side", None)
        return side and ceil(side / NEAR)

    @property
    def identity(self) -> dict[str, Any]:
        """The encoder's own, and how many views."""
        return {**self.encoder.identity, "views": self.views}

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """The views one below the other, (3, views * height, width)."""
        near, mirror = nearer(image), ImageOps.mirror
        seen = [image, mirror(near), mirror(image), near][: self.views]
        return np.concatenate([self.encoder.prepare(view) for view in seen], axis=1)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim) of length one, averaged over views."""
        views = map(np.ascontiguousarray, np.split(batch, self.views, axis=2))
        return unit(np.mean([unit(self.encoder.encode(view)) for view in views], axis=0))

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Of class names, if the encoder can read."""
        return self.encoder.text_features(names)

    def to(self, device: str | None) -> Self:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.encoder.to(device)
        return self


def nearer(image: Image.Image) -> Image.Image:
    """The middle of an image, as large as the image.

    >>> nearer(Image.new("RGB", (50, 30))).size
    (50, 30)
    """
    width, height = image.size
    border = (1 - NEAR) / 2
    box = (width * border, height * border, width * (1 - border), height * (1 - border))
    return image.resize(image.size, Image.Resampling.BICUBIC, box=box)
