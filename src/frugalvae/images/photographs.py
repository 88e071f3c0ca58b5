"""From photographs to features: files, images in memory, or a mixture of both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE
from frugalvae.images.decode import decode, reading_images, rgb
from frugalvae.images.listing import Listing
from frugalvae.images.shards import (
    Encoded,
    Shard,
    ahead,
    encode,
    encode_files,
    encode_here,
    reason,
)
from frugalvae.images.walk import File, read_file
from frugalvae.interfaces import Encoder

#: A path, an image of Pillow, or colours (height, width, 3) from 0 to 255.
Photograph: TypeAlias = str | Path | Image.Image | NDArray[np.uint8]

THREADS = os.cpu_count() or 1


def encode_all(encoder: Encoder, images: Listing, *, strict: bool = True) -> Encoded:
    """Features of the images of a folder; if ``strict``, an error names those that have none."""
    done = encode_files(images.files, encoder, BATCH_SIZE, THREADS)
    if strict:
        refuse(images.paths, done.reasons, "; strict=False leaves out what cannot be read")
    return done


def encode_batches(
    encoder: Encoder, files: Sequence[File], batch_size: int = BATCH_SIZE
) -> Iterator[tuple[range, Encoded]]:
    """Features a batch at a time, as soon as it is done, with the places of its files.

    Decoding goes on meanwhile.
    """
    starts = range(0, len(files), batch_size)
    shards = [Shard(start, files[start : start + batch_size]) for start in starts]
    for shard, encoded in encode_here(shards, encoder, batch_size, THREADS):
        yield range(shard.number, shard.number + len(shard.files)), encoded


def encode_photographs(
    encoder: Encoder, photographs: Photograph | Iterable[Photograph]
) -> NDArray[np.float32]:
    """Features (n, d) of photographs; an error that names those that cannot be read.

    >>> from frugalvae.encoders import make_frozen
    >>> encoder = make_frozen("efficientnet", size=64)
    >>> encode_photographs(encoder, Image.new("RGB", (80, 60), "red")).shape
    (1, 1280)
    """
    one = isinstance(photographs, str | Path | Image.Image)
    one = one or (isinstance(photographs, np.ndarray) and photographs.ndim < 4)
    given: list[Any] = [photographs] if one else list(photographs)  # type: ignore[arg-type]
    if not given:
        raise InputError("no photographs were given; give paths, images of Pillow, or arrays")
    with reading_images():
        ready = ahead(partial(prepared, encoder), given, THREADS, 4 * BATCH_SIZE)
        done = encode(encoder, ready, BATCH_SIZE)
    refuse(given, done.reasons)
    return done.features


def refuse(given: Sequence[Any], reasons: dict[int, str], advice: str = "") -> None:
    """Raise an error about photographs that cannot be read, if there are any."""
    if reasons:
        place, why = next(iter(reasons.items()))
        shown = given[place] if isinstance(given[place], str | PurePath) else f"number {place}"
        raise InputError(
            f"{len(reasons)} of {len(given)} photographs cannot be read, the first is "
            f"{shown}: {why}{advice}"
        )


def prepared(encoder: Encoder, photograph: Photograph) -> NDArray[np.float32] | str:
    """What the network takes of a photograph; or why it cannot be read."""
    try:
        return encoder.prepare(opened(photograph, getattr(encoder, "side", None)))
    except Exception as error:  # Pillow fails in many ways
        return reason(error)


def opened(photograph: Photograph, side: int | None) -> Image.Image:
    """A photograph upright, in red, green and blue."""
    if isinstance(photograph, str | Path):
        return decode(read_file(Path(photograph)), side)
    if isinstance(photograph, Image.Image):
        return rgb(photograph.copy())
    array = np.asarray(photograph)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise InputError(
            f"an array of shape {array.shape} and type {array.dtype}; expected colours from 0 to "
            "255 of type uint8, (height, width, 3) or (height, width)"
        )
    return rgb(Image.fromarray(array))
