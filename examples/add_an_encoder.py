"""Add an encoder: how much of each shade of red, green and blue an image has.

Nothing of FrugalVAE has to be changed. In the folder of this file:

    python add_an_encoder.py                     # check it, and teach it three colours
    frugalvae learn mine.frugal PHOTOS --encoder add_an_encoder:HistogramEncoder
    frugalvae predict mine.frugal PHOTO.jpg --encoder add_an_encoder:HistogramEncoder
    frugalvae encode PHOTOS -o features.npz --encoder add_an_encoder:HistogramEncoder

Settings go with ``--set encoder.bins=8``, when the file is made.

The file remembers the encoder's name. Nothing that a file names is imported, so that
``--encoder`` has to be given again.

``EncoderDefaults`` gives ``prepare`` (resize, cut out the middle, scale to 0 to 1) and
``identity``, by which features of another encoder are recognised: class, settings, and
attributes that are arrays. A network's weights belong into such an attribute, or their digest
into an ``identity`` of your own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae import FrugalClassifier, PhotoClassifier
from frugalvae.encoders.defaults import EncoderDefaults
from frugalvae.testing import check_encoder


class HistogramEncoder(EncoderDefaults):
    """``bins`` shades of each colour: the share of pixels that have it."""

    def __init__(self, bins: int = 4, size: int = 32) -> None:
        self.bins = bins
        self.size = size  # of the square that prepare() makes of an image

    @property
    def dim(self) -> int:
        """Feature dimension."""
        return 3 * self.bins

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim) of prepared images (n, 3, size, size)."""
        shades = np.minimum((batch * self.bins).astype(int), self.bins - 1)
        shares = [(shades == shade).mean(axis=(2, 3)) for shade in range(self.bins)]  # (n, 3) each
        return np.concatenate(shares, axis=1).astype(np.float32)


if __name__ == "__main__":
    check_encoder(HistogramEncoder)
    with tempfile.TemporaryDirectory() as folder:
        for colour in ("red", "green", "blue"):
            Path(folder, colour).mkdir()
            for side in (40, 60):
                image = Image.new("RGB", (side, 50), colour)
                image.save(Path(folder, colour, f"{side}.png"))
        features = FrugalClassifier("gaussian-diagonal", "nearest-mean")
        own = "add_an_encoder:HistogramEncoder"
        classifier = PhotoClassifier(own, classifier=features, bins=8).learn(folder)
    shown = Image.new("RGB", (30, 30), "blue")
    print(f"a blue image is taken for {classifier.predict(shown)[0]}")
