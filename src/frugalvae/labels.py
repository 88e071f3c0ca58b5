"""Labels: names of classes, how they are written, which are the same, and which is meant."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from frugalvae.errors import InputError, UnknownClassError, suggestion
from frugalvae.formatting import printable

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

#: Blanks of all kinds, but for what ends a line.
BLANK = re.compile(r"[^\S\t-\r\x1c-\x1f\x85\u2028\u2029]|[\u2800\u3164\uffa0]")
#: Joiners and selectors of variants where nobody sees them: after a Latin or Cyrillic letter.
UNSEEN = re.compile(r"(?<![\u0590-\u1dff\u2010-\U0010ffff])[\u034f\u200c\u200d\ufe00-\ufe0f]+")

LONGEST = 255  # characters of a label, as of a folder's name: composing accents takes their square
FOLDERS = "use one spelling if they are one class, or give --case-matters if they are two"
COMPARED, COUNTED = 50_000, 5_000_000  # pairs of names, about, that are compared by their letters


# --------------------------------------------------------------------------- as it is written


def as_label(label: T) -> T:
    """A label as it is kept and compared, so that two that look the same are one.

    Accents are composed, blanks are single, there is none at either end, and nothing that cannot
    be seen. Numbers are as they are. More than ``LONGEST`` characters are refused.

    >>> as_label("Ru" + chr(0x308) + "ppell  Warbler ") == "R" + chr(0xFC) + "ppell Warbler"
    True
    """
    if not isinstance(label, str):
        return label
    if len(label) > LONGEST:
        raise InputError(
            f"the label {label[:40]!r}... has {len(label):,} characters; expected at most "
            f"{LONGEST}; give a shorter name"
        )
    seen = UNSEEN.sub("", BLANK.sub(" ", unicodedata.normalize("NFC", label)))
    return re.sub(" +", " ", unicodedata.normalize("NFC", seen)).strip()  # type: ignore[return-value]


def as_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """The same of each label of an array."""
    if labels.dtype.kind not in "UO":
        return labels
    written = {label: as_label(label) for label in set(labels.ravel().tolist())}
    if all(label == name for label, name in written.items()):
        return labels
    import numpy as np  # which help does not need

    found = np.array([written[label] for label in labels.ravel().tolist()]).reshape(labels.shape)
    return found.astype(object) if labels.dtype.kind == "O" else found


def by_label(values: Mapping[Any, T]) -> dict[Any, T]:
    """Values by label as it is kept; a refusal of two for one."""
    found = {as_label(label): value for label, value in values.items()}
    if len(found) < len(values):
        twice = next(y for y, n in Counter(map(as_label, values)).items() if n > 1)
        raise InputError(f"the label {twice!r} is there twice, written in two ways; leave one out")
    return found


def is_plain(text: object) -> bool:
    r"""Whether it is a name that can be read, without control characters.

    >>> is_plain("emu"), is_plain(" "), is_plain("e\x1b[31mmu"), is_plain("\u202eume")
    (True, False, False, False)
    """
    short = isinstance(text, str) and len(text) <= LONGEST
    return short and bool(as_label(text)) and printable(text) == text  # type: ignore[arg-type]


def check_label(label: Any) -> Any:
    """A new label as it is kept; a refusal of what is none, and of names that steer a terminal."""
    label = as_label(label)
    value = label.item() if hasattr(label, "item") else label  # NumPy's numbers are no int
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if not (whole or isinstance(value, str)):
        raise InputError(f"the label is {label!r}; expected a name or a whole number")
    if isinstance(value, str) and not is_plain(value):
        raise InputError(
            f"the label is {label!r}; expected a name that can be read, without control characters"
        )
    return label


def listing(labels: NDArray[Any], most: int = 8) -> str:
    """The first few labels, and how many more there are.

    >>> import numpy as np
    >>> listing(np.arange(5), most=2)
    'Known: 0, 1 and 3 more'
    """
    shown = ", ".join(map(repr, labels[:most].tolist()))
    return f"Known: {shown}" + (f" and {len(labels) - most} more" if len(labels) > most else "")


# --------------------------------------------------------------------------- which is meant


def label_named(path: Path | str, labels: list[Any], typed: str, listed: str = "") -> Any:
    """The label that was typed: a name, or a number where labels are numbers.

    ``listed`` is where all of them are, by default a command.
    """
    name = as_label(typed)
    for label in labels:
        if str(label) == name:
            return label
    listed = listed or f"'frugalvae status {path}'"
    raise UnknownClassError(
        f"{path} knows no class {typed!r}.{suggestion(typed, map(str, labels))} "
        f"{listed} lists all {len(labels)}"
    )


def like(label: Any, name: str) -> Any:
    """A new name as a label: a number if it is to stand beside numbers."""
    new: Any = as_label(name)
    is_number = not isinstance(label, str) and re.fullmatch(r"-?\d+", new)
    return int(new) if is_number else new


# --------------------------------------------------------------------------- which are alike


def folded(name: str) -> str:
    """A name without what people write one way or the other, its case.

    >>> folded("Snow  Bunting")
    'snow bunting'
    """
    return as_label(name).casefold()


def check_case(new: Iterable[str], known: Iterable[str], advice: str = FOLDERS) -> None:
    """Refuse names that differ in nothing but upper and lower case, or in blanks."""
    seen = {folded(name): name for name in known}
    for name in new:
        other = seen.setdefault(folded(name), name)
        if other != name:
            case = name.casefold() == other.casefold()
            raise InputError(
                f"classes {other!r} and {name!r} differ only in "
                f"{'upper and lower case' if case else 'case or blanks'}; {advice}"
            )


def near(name: str, known: Collection[str]) -> str | None:
    """A known name of which another may be a misspelling: a letter or two differ.

    Or it is the same, in a folder too deep.

    >>> near("Cardnal", ["Cardinal", "Bobolink"]), near("cat", ["bat"])
    ('Cardinal', None)
    >>> near("week 6/Cardinal", ["Cardinal", "Bobolink"])
    'Cardinal'
    """
    inner = name.rpartition("/")[2]
    if inner != name and inner in known:
        return inner
    allowed = 0 if len(name) < 4 else 1 if len(name) < 8 else 2
    ours = name.casefold()
    letters, digits = set(ours), _digits(ours)
    for other in known:
        theirs = other.casefold()
        close = abs(len(other) - len(name)) <= allowed
        close = close and len(letters ^ set(theirs)) <= 2 * allowed  # quickly counted
        if close and digits == _digits(theirs) and edits(ours, theirs) <= allowed:
            return other
    return None


def nearly_known(new: Iterable[str], known: Collection[str]) -> list[str]:
    """A line for each new name that is nearly a known one.

    >>> nearly_known(["Cardnal", "Wren"], ["Cardinal"])
    ["'Cardnal' is taught as a new class, and is nearly 'Cardinal', which is known"]
    """
    pairs = [(name, near(name, known)) for name in new]
    return [
        f"{name!r} is taught as a new class, and is nearly {other!r}, which is known"
        for name, other in pairs
        if other is not None
    ]


def near_pairs(new: Sequence[str], known: Sequence[str] = ()) -> list[tuple[str, str]]:
    """New names that may be misspellings of a later new one or of a known one, with that one.

    Names whose letters hardly differ are compared; of many names, the first ones with the others:
    all pairs would take the square of their number.

    >>> near_pairs(["Cardnal", "Wren"], ["Cardinal"])
    [('Cardnal', 'Cardinal')]
    """
    import numpy as np  # which help does not need

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
    differ = abs(letters[row + 1 :] - letters[row]).sum(axis=1)
    return (row + 1 + (differ <= 4).nonzero()[0]).tolist()


def _digits(name: str) -> list[str]:
    """What tells 'task 1' from 'task 2', which are not misspelt."""
    return [letter for letter in name if letter.isdigit()]


def edits(one: str, two: str, most: int = 2) -> int:
    """How many letters must be added, left out, replaced, or swapped with the next.

    If they are more than ``most``, it is one more than that: counting all of them would take the
    product of both lengths.

    >>> edits("wren", "wern"), edits("wren", "wrens"), edits("wren", "gull")
    (1, 1, 3)
    """
    pairs = enumerate(zip(one, two, strict=False))
    same = next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))
    one, two = one[same:], two[same:]
    if one == two or not most:
        return int(one != two)
    rests = [(one[1:], two), (one, two[1:]), (one[1:], two[1:])]
    if one[:2] == two[1::-1]:
        rests.append((one[2:], two[2:]))
    return 1 + min(edits(first, second, most - 1) for first, second in rests)
