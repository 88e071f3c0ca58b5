"""What was taught: digests that tell photographs apart, and other names of classes.

A digest is six bytes of a hash of a file's content, whatever the encoder. Samples of a class whose
digests are kept are recognised, and not counted twice. Two different photographs of one class have
the same digest with a probability of 4e-15: of a million in one class, one is taken for known
with a probability of 0.2 %.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BYTES = 6  # of a digest
NONE = 0  # in place of the digest of what cannot be read
BY_DIGEST = ("digests", "withheld")  # what a model and its file keep by digest

#: By the number of a class, the digests of its samples, ascending.
Digests = Mapping[int, "NDArray[np.uint64]"]

#: Names that classes had, with the labels they have now; None for forgotten classes.
Aliases = Mapping[str, Any]


# --------------------------------------------------------------------------- digests


def digest(content: bytes) -> int:
    """The digest of a file's content, or of a row of features.

    >>> digest(b"a photograph") == digest(b"a photograph"), digest(b"another") < 2**48
    (True, True)
    """
    return int.from_bytes(hashlib.blake2b(content, digest_size=BYTES).digest(), "little") or 1


def with_digests(kept: Digests, more: Digests) -> dict[int, NDArray[np.uint64]]:
    """The digests of both, by class; one that is in both is there twice, as its sample is."""
    joined = dict(kept)
    for number, found in more.items():
        before = joined.get(number, np.empty(0, np.uint64))
        joined[number] = np.sort(np.concatenate([before, np.asarray(found, np.uint64)]))
    return {number: found for number, found in joined.items() if len(found)}


def without_digests(kept: Digests, gone: Digests) -> dict[int, NDArray[np.uint64]]:
    """The digests by class but for some: of one that is there twice, as many as are given.

    >>> twice = {0: np.array([5, 5, 7], np.uint64)}
    >>> without_digests(twice, {0: np.array([5, 8], np.uint64)})[0].tolist()
    [5, 7]
    """
    left = {}
    for number, found in kept.items():
        values, counts = np.unique(found, return_counts=True)
        taken, times = np.unique(np.asarray(gone.get(number, []), np.uint64), return_counts=True)
        places = np.flatnonzero(np.isin(values, taken))
        counts[places] -= np.minimum(counts[places], times[np.isin(taken, values)])
        left[number] = values.repeat(counts)
    return {number: found for number, found in left.items() if len(found)}


def pack_digests(digests: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint8]:
    """All digests one after the other, (n, 6) bytes.

    >>> packed = pack_digests([np.array([7, 2**40], np.uint64)])
    >>> unpack_digests(packed).tolist() == [7, 2**40]
    True
    """
    all_of_them = np.concatenate([np.empty(0, np.uint64), *digests]).astype("<u8")
    return np.ascontiguousarray(all_of_them.view(np.uint8).reshape(-1, 8)[:, :BYTES])


def unpack_digests(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The inverse of :func:`pack_digests`."""
    wide = np.zeros((len(packed), 8), np.uint8)
    wide[:, :BYTES] = packed
    return wide.reshape(-1).view("<u8").astype(np.uint64)


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
