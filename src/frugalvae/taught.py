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
COMPARED, COUNTED = 50_000, 5_000_000  # pairs of names, about, that are compared by their letters
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


# --------------------------------------------------------------------------- names


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


def near(name: str, known: Collection[str]) -> str | None:
    """A known name of which another may be a misspelling: a letter or two differ.

    >>> near("Cardnal", ["Cardinal", "Bobolink"]), near("cat", ["bat"])
    ('Cardinal', None)
    """
    allowed = 0 if len(name) < 4 else 1 if len(name) < 8 else 2
    folded = name.casefold()
    letters = set(folded)
    for other in known:
        alike = abs(len(other) - len(name)) <= allowed
        alike = alike and len(letters ^ set(other.casefold())) <= 2 * allowed  # soon told
        alike = alike and not _digits_differ(folded, other.casefold())
        if alike and edits(folded, other.casefold()) <= allowed:
            return other
    return None


def near_pairs(new: Sequence[str], known: Sequence[str] = ()) -> list[tuple[str, str]]:
    """New names that may be misspellings of a later new one or of a known one, with that one.

    Names whose letters hardly differ are compared; of many names, the first ones with the others:
    all pairs would take the square of their number.

    >>> near_pairs(["Cardnal", "Wren"], ["Cardinal"])
    [('Cardnal', 'Cardinal')]
    """
    names, found, compared = [*new, *known], list[tuple[str, str]](), 0
    letters = np.zeros((len(names), 64), np.int16)
    for row, name in enumerate(names):
        np.add.at(letters[row], [ord(letter) % 64 for letter in name.casefold()], 1)
    for row, name in enumerate(new[: 1 + COUNTED // max(len(names), 1)]):
        others = [names[place] for place in _like(letters, row)]
        found += [(name, two) for two in others if name != two and near(name, [two]) is not None]
        compared += len(others)
        if compared > COMPARED:
            break
    return found


def _like(letters: NDArray[np.int16], row: int) -> list[int]:
    """Later rows of counts of letters that hardly differ: two edits change up to four counts."""
    differ = np.abs(letters[row + 1 :] - letters[row]).sum(axis=1)
    found: list[int] = (row + 1 + np.flatnonzero(differ <= 4)).tolist()
    return found


def _digits_differ(one: str, two: str) -> bool:
    """Whether names are told apart by numbers, as 'task 1' and 'task 2' are."""
    numbers = [[letter for letter in name if letter.isdigit()] for name in (one, two)]
    return numbers[0] != numbers[1]


def edits(one: str, two: str) -> int:
    """How many letters must be added, left out, replaced, or swapped with the next.

    >>> edits("wren", "wern"), edits("wren", "wrens"), edits("wren", "gull")
    (1, 1, 4)
    """
    before, last = [0] * (len(two) + 1), list(range(len(two) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(two, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
