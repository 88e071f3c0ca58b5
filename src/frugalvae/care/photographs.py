"""Photographs that are decoded once: features, digests and quality of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frugalvae.care.image_quality import Quality, quality_of
from frugalvae.digests import DIGEST, NONE, digest
from frugalvae.images.decode import LARGE_BYTES, File, alone, decode
from frugalvae.images.photographs import AHEAD, THREADS, ahead, encode, reason
from frugalvae.maths.arrays import Array
from frugalvae.parts.protocols import Encoder
from frugalvae.progress import track


@dataclass(frozen=True)
class MeasuredPhotographs:
    """What came of some photographs.

    Attributes
    ----------
    features
        Of those that can be read, (m, d).
    places
        Where each of these is, (m,).
    reasons
        Why each of the others cannot be read, by its place.
    digests
        Of all, (n,).
    qualities
        Of those that can be read, by their place.
    """

    features: NDArray[np.float32]
    places: NDArray[np.int64]
    reasons: dict[int, str]
    digests: NDArray[np.bytes_]
    qualities: dict[int, Quality]

    @property
    def patterns(self) -> Array:
        """Of those that can be read, (m, bits)."""
        return np.array([self.qualities[place].pattern for place in self.places.tolist()])


def measure(files: Sequence[File], encoder: Encoder, batch_size: int) -> MeasuredPhotographs:
    """Read, measure and encode photographs; each file is read once."""
    digests, qualities = np.full(len(files), NONE, DIGEST), dict[int, Quality]()
    side = getattr(encoder, "side", None)

    def look(file: File) -> tuple[bytes, Quality | None, NDArray[np.float32] | str]:
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
        results = ahead(look, files, THREADS, AHEAD * batch_size)
        for place, result in zip(track(range(len(files)), "encoding images"), results, strict=True):
            digests[place], quality, image = result
            if quality is not None:
                qualities[place] = quality
            yield image

    encoded = encode(encoder, images(), batch_size)
    found = encoded.features, encoded.places, encoded.reasons
    return MeasuredPhotographs(*found, digests, qualities)
