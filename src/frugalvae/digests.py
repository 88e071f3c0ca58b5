"""What was taught: digests that tell photographs apart, and other names of classes.

A digest is 16 bytes made of a file's content, whatever the encoder. Samples of a class whose
digests are kept are recognised, and not counted twice. Nobody can make two photographs with the
same digest: that would take 2**64 attempts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BYTES = 16  # of a digest
DIGEST = f"S{BYTES}"  # the type of an array of them
NONE = b""  # in place of the digest of what cannot be read
BY_DIGEST = ("digests", "withheld")  # what a model and its file keep by digest

# By the number of a class, the digests of its samples, ascending.
Digests = Mapping[int, "NDArray[np.bytes_]"]

#: Names that classes had, with the labels they have now; None for forgotten classes.
Aliases = Mapping[str, Any]


# --------------------------------------------------------------------------- digests


def digest(content: bytes) -> bytes:
    """The digest of a file's content, or of a row of features.

    >>> digest(b"a photograph") == digest(b"a photograph"), len(digest(b"another"))
    (True, 16)
    """
    sizes = 6, 10  # of two hashes: files that were taught so recognise their photographs
    return b"".join(hashlib.blake2b(content, digest_size=size).digest() for size in sizes)


def among(found: NDArray[np.bytes_], kept: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Which digests are among those that are kept.

    >>> among(np.array([digest(b"a photograph")]), np.array([digest(b"another")]))
    array([False])
    """
    known = set(kept.tolist())
    return np.fromiter((one in known for one in found.tolist()), bool, len(found))


def with_digests(kept: Digests, more: Digests) -> dict[int, NDArray[np.bytes_]]:
    """The digests of both, by class; one that is in both is there twice, as its sample is."""
    joined = dict(kept)
    for number, found in more.items():
        before = joined.get(number, np.empty(0, DIGEST))
        joined[number] = np.sort(np.concatenate([before, np.asarray(found, DIGEST)]))
    return {number: found for number, found in joined.items() if len(found)}


def without_digests(kept: Digests, gone: Digests) -> dict[int, NDArray[np.bytes_]]:
    """The digests by class but for some: of one that is there twice, as many as are given.

    >>> twice = {0: np.array([b"a", b"a", b"c"], "S16")}
    >>> without_digests(twice, {0: np.array([b"a", b"b"], "S16")})[0].tolist()
    [b'a', b'c']
    """
    left = {}
    for number, found in kept.items():
        values, counts = np.unique(found, return_counts=True)
        taken, times = np.unique(np.asarray(gone.get(number, []), DIGEST), return_counts=True)
        places = np.flatnonzero(np.isin(values, taken))
        counts[places] -= np.minimum(counts[places], times[np.isin(taken, values)])
        left[number] = values.repeat(counts)
    return {number: found for number, found in left.items() if len(found)}


def pack_digests(digests: Sequence[NDArray[np.bytes_]]) -> NDArray[np.uint8]:
    """All digests one after the other, (n, 16) bytes.

    >>> found = np.array([digest(b"a photograph"), digest(b"another")])
    >>> (unpack_digests(pack_digests([found])) == found).tolist()
    [True, True]
    """
    return np.concatenate([np.empty(0, DIGEST), *digests]).view(np.uint8).reshape(-1, BYTES)


def unpack_digests(packed: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    """The inverse of :func:`pack_digests`."""
    return np.ascontiguousarray(packed).view(DIGEST).ravel()


# --------------------------------------------------------------------------- aliases


def renamed(aliases: Aliases, old: Any, new: Any) -> dict[str, Any]:
    """With ``new`` for what was called ``old``: a label, or None if the class is forgotten.

    >>> renamed(renamed({}, "wren", "house wren"), "house wren", None)
    {'wren': None, 'house wren': None}
    """
    moved = {name: new if label == old else label for name, label in aliases.items()}
    return without(moved | {str(old): new}, [new])


def without(aliases: Aliases, labels: Collection[Any]) -> dict[str, Any]:
    """Without names that are labels of classes themselves."""
    names = set(map(str, labels))
    return {name: label for name, label in aliases.items() if name not in names}
