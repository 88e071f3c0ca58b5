"""Features of some images: files are decoded ahead of the network, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from frugalvae.images.decode import decode
from frugalvae.images.limits import LARGE_BYTES, alone
from frugalvae.images.walk import File
from frugalvae.interfaces import Encoder
from frugalvae.progress import track

AHEAD = 3  # batches that are ready or being decoded while the network works on one

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Shard:
    """Some consecutive images of a data set: what is encoded and written at a time."""

    number: int
    files: Sequence[File]


@dataclass(frozen=True)
class Encoded:
    """What came of a shard.

    Attributes
    ----------
    features
        Of the images that could be read, shape (m, d), float32.
    places
        Where in the shard each of these is.
    reasons
        Why each of the others could not be read, by its place.
    """

    features: NDArray[np.float32]
    places: NDArray[np.int64]
    reasons: dict[int, str]


def encode_files(files: Sequence[File], encoder: Encoder, batch_size: int, threads: int) -> Encoded:
    """Features of some files, which are kept nowhere."""
    [(_, encoded)] = encode_here([Shard(0, files)], encoder, batch_size, threads)
    return encoded


def encode_here(
    shards: Sequence[Shard], encoder: Encoder, batch_size: int, threads: int
) -> Iterator[tuple[Shard, Encoded]]:
    """Encode one shard after the other; decoding does not stop between them."""
    files = [file for shard in shards for file in shard.files]
    ready = ahead(lambda file: prepare(encoder, file), files, threads, AHEAD * batch_size)
    steps = track(range(len(files)), "encoding images")
    counted = (item for _, item in zip(steps, ready, strict=True))
    for shard in shards:
        yield shard, encode(encoder, islice(counted, len(shard.files)), batch_size)
    next(counted, None)  # tells that all is done


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


def prepare(encoder: Encoder, file: File) -> NDArray[np.float32] | str:
    """What the network takes of an image; or why it cannot be read."""
    try:
        with alone(file.size > LARGE_BYTES):
            image = decode(file.read(), getattr(encoder, "side", None))
        return encoder.prepare(image)
    except Exception as error:  # Pillow and zipfile fail in many ways
        return reason(error)


def reason(error: Exception) -> str:
    """What an error says, in one line.

    >>> reason(MemoryError()), reason(OSError("cut off"))
    ('MemoryError', 'cut off')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def encode(
    encoder: Encoder, images: Iterable[NDArray[np.float32] | str], batch_size: int
) -> Encoded:
    """Features of prepared images, a batch at a time; reasons are passed on."""
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
        if len(batch) == batch_size:
            finish()
    if batch:
        finish()
    return Encoded(np.concatenate(rows), np.array(places, np.int64), reasons)
