"""What an encoder need not write itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.encoders.identity import weights_digest
from frugalvae.encoders.preprocess import Preprocessing
from frugalvae.parts.registry import settings_of

COMPARED = ("clip", "siglip")  # models that compare features with texts, at length one


class EncoderDefaults:
    """Gives an encoder all but ``dim`` and ``encode``.

    Attributes
    ----------
    size
        Side of the square that :meth:`prepare` makes of an image.
    mean, std
        Of each colour, from 0 to 1; :meth:`prepare` subtracts and divides.

    Examples
    --------
    >>> class MeanColour(EncoderDefaults):
    ...     dim, size = 3, 8
    ...     def encode(self, batch):
    ...         return batch.mean(axis=(2, 3))
    >>> encoder = MeanColour()
    >>> encoder.encode(encoder.prepare(Image.new("RGB", (20, 9), "red"))[None]).tolist()
    [[1.0, 0.0, 0.0]]
    """

    size: int = 224
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)

    @cached_property
    def prepared(self) -> Preprocessing:
        """How images are prepared; an encoder may set its own."""
        return Preprocessing(self.size, (self.size, self.size), self.mean, self.std)

    @property
    def side(self) -> int | None:
        """What the shorter side of an image is resized to."""
        return self.prepared.side

    @property
    def identity(self) -> dict[str, Any]:
        """What tells its features from others': class, preprocessing, settings and arrays.

        An encoder whose weights are not in attributes that are arrays gives an identity of
        its own, with a digest of its weights.
        """
        kind, settings = type(self), json.dumps(settings_of(self), sort_keys=True)
        arrays = {name: value for name, value in vars(self).items() if type(value) is np.ndarray}
        return {
            "encoder": getattr(self, "name", f"{kind.__module__}:{kind.__qualname__}"),
            "model": settings,
            "preprocessing": self.prepared.to_json(),
            "weights": weights_digest({settings: np.empty(0), **arrays}),
        }

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        """An image in red, green and blue as the network takes it, (3, height, width)."""
        return self.prepared(image)

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """None: it cannot read."""
        return None

    def to(self, device: str | None) -> Self:
        """Itself: it computes where it is."""
        return self


class ModelEncoder(EncoderDefaults):
    """Gives an encoder of a model, from a file, a folder or the hub, its identity.

    Attributes
    ----------
    format
        What the identity calls the encoder.
    model
        The path or the name on the hub; of a path only the end is told.
    digest, probe
        Of the weights, and the mark of its features.
    """

    format: str
    model: str | Path
    digest: str
    probe: list[float]

    @property
    def identity(self) -> dict[str, Any]:
        """Which network it is."""
        path = Path(self.model)
        return {
            "encoder": self.format,
            "model": path.resolve().name if path.exists() else str(self.model),
            "preprocessing": self.prepared.to_json(),
            "weights": self.digest,
            "probe": self.probe,
        }
