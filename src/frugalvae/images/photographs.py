"""From photographs to features, decoded ahead of the network in threads; and to digests."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frugalvae.console import track
from frugalvae.digests import DIGEST, NONE, digest
from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE
from frugalvae.images.decode import (
    LARGE_BYTES,
    File,
    alone,
    decode,
    on_disk,
    reading_images,
    rgb,
)
from frugalvae.parts.protocols import Encoder

#: A path, an image of Pillow, or colours (height, width, 3) from 0 to 255.
Photograph: TypeAlias = str | Path | Image.Image | NDArray[np.uint8]

THREADS = os.cpu_count() or 1
LARGE = 3 * 512**2  # numbers of an image; of larger ones fewer are encoded at a time
AHEAD = 3  # batches that are ready or being decoded while the network works on one
BLOCK = 4096  # rows of features whose digests are computed at a time

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Encoded:
    """What came of some photographs, or of rows of features.

    Attributes
    ----------
    features
        Of the images that could be read, shape (m, d), float32.
    places
        Where among all each of these is.
    reasons
        Why each of the others could not be read, by its place.
    """

    features: NDArray[np.float32]
    places: NDArray[np.int64]
    reasons: dict[int, str]


def encode_photographs(
    encoder: Encoder, photographs: Photograph | Iterable[Photograph]
) -> NDArray[np.float32]:
    """Features (n, d) of photographs; an error that names those that cannot be read.

    >>> from frugalvae.encoders import make_encoder
    >>> encoder = make_encoder("efficientnet", size=64)
    >>> encode_photographs(encoder, Image.new("RGB", (80, 60), "red")).shape
    (1, 1280)
    """
    if isinstance(photographs, bytes | bytearray):
        raise InputError("bytes were given; give a path, an image of Pillow, or an array")
    if isinstance(photographs, str | Path) and Path(photographs).is_dir():
        raise InputError(f"{photographs} is a folder; give its files, such as Path(...).iterdir()")
    one = isinstance(photographs, str | Path | Image.Image)
    one = one or (isinstance(photographs, np.ndarray) and photographs.ndim < 4)
    given: list[Any] = [photographs] if one else list(photographs)  # type: ignore[arg-type]
    if not given:
        raise InputError("no photographs were given; give paths, images of Pillow, or arrays")
    with reading_images():
        done = encode_files(encoder, given)
    for place, why in done.reasons.items():
        shown = given[place] if isinstance(given[place], str | Path) else f"number {place}"
        raise InputError(
            f"{len(done.reasons)} of {len(given)} photographs cannot be read, the first is "
            f"{shown}: {why}"
        )
    return done.features


def encode_files(
    encoder: Encoder, files: Sequence[Any], batch_size: int = BATCH_SIZE, threads: int = THREADS
) -> Encoded:
    """Features of some files, which are kept nowhere."""
    return next(encode_groups(encoder, [files], batch_size, threads))


def encode_groups(
    encoder: Encoder, groups: Sequence[Sequence[File]], batch_size: int, threads: int
) -> Iterator[Encoded]:
    """Features of one group of files after the other; decoding does not stop between them."""
    files = [file for group in groups for file in group]
    ready = ahead(partial(prepare, encoder), files, threads, AHEAD * batch_size)
    steps = track(range(len(files)), "encoding images")
    counted = (item for _, item in zip(steps, ready, strict=True))
    for number, group in enumerate(groups, start=1):
        done = encode(encoder, islice(counted, len(group)), batch_size)
        if number == len(groups):
            next(counted, None)  # tells that all is done
        yield done


def ahead(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int, most: int
) -> Iterator[Result]:
    """Results in the order of the items; up to ``most`` of them are worked on in advance.

    >>> list(ahead(str.upper, ["a", "b", "c"], threads=2, most=2))
    ['A', 'B', 'C']
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) == most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def prepare(encoder: Encoder, photograph: File | Photograph) -> NDArray[np.float32] | str:
    """What the network takes of a photograph; or why it cannot be read."""
    try:
        return encoder.prepare(opened(photograph, encoder.side))
    except Exception as error:  # Pillow and zipfile fail in many ways
        return reason(error)


def opened(photograph: File | Photograph, side: int | None) -> Image.Image:
    """A photograph upright, in red, green and blue."""
    if isinstance(photograph, str | Path):
        photograph = on_disk(Path(photograph))
    if isinstance(photograph, File):
        with alone(photograph.size > LARGE_BYTES):
            return decode(photograph.read(), side)
    if isinstance(photograph, Image.Image):
        return rgb(photograph.copy())
    array = np.asarray(photograph)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise InputError(
            f"an array of shape {array.shape} and type {array.dtype}; expected colours from 0 to "
            "255 of type uint8, (height, width, 3) or (height, width)"
        )
    return rgb(Image.fromarray(array))


def digests_of(files: Sequence[File], what: str = "looking for new images") -> NDArray[np.bytes_]:
    """The digest of the content of each file, if it can be read; ``what`` is being done."""

    def found(file: File) -> bytes:
        try:
            with alone(file.size > LARGE_BYTES):
                return digest(file.read())
        except Exception:  # as above; who decodes it says why
            return NONE

    digests = ahead(found, files, THREADS, 4 * THREADS)
    tracked = zip(track(range(len(files)), what), digests, strict=True)
    return np.fromiter((value for _, value in tracked), DIGEST, len(files))


def digests_of_rows(table: Any, rows: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """The digest of each of some rows of features."""
    found = np.empty(len(rows), DIGEST)
    for start in range(0, len(rows), BLOCK):
        block = np.ascontiguousarray(table[rows[start : start + BLOCK]])
        found[start : start + BLOCK] = [digest(row.tobytes()) for row in block]
    return found


def unreadable(names: Sequence[str], files: Sequence[File], threads: int) -> dict[str, str]:
    """Files that cannot be read as images, by their names, each with the reason."""

    def problem(file: File) -> str | None:
        try:
            opened(file, side=1)  # all of it is read, however small it is made
        except Exception as error:  # Pillow and zipfile fail in many ways
            return reason(error)
        return None

    found = ahead(problem, files, threads, 4 * threads)
    checked = zip(track(names, "checking images"), found, strict=True)
    return {name: why for name, why in checked if why is not None}


def reason(error: Exception) -> str:
    """What an error says, in one line.

    >>> reason(MemoryError()), reason(OSError("cut off"))
    ('MemoryError', 'cut off')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def encode(
    encoder: Encoder, images: Iterable[NDArray[np.float32] | str], batch_size: int
) -> Encoded:
    """Features of prepared images, a batch or less at a time; reasons are passed on."""
    rows: list[NDArray[np.float32]] = [np.empty((0, encoder.dim), np.float32)]
    batch: list[NDArray[np.float32]] = []
    places: list[int] = []
    reasons: dict[int, str] = {}

    def finish() -> None:
        rows.append(encoder.encode(np.stack(batch)))
        batch.clear()

    for place, image in enumerate(images):
        if isinstance(image, str):
            reasons[place] = image
            continue
        places.append(place)
        batch.append(image)
        if len(batch) == batch_size or len(batch) * image.size >= batch_size * LARGE:
            finish()
    if batch:
        finish()
    return Encoded(np.concatenate(rows), np.array(places, np.int64), reasons)
