"""Which folders are classes.

A class is a folder, named by its path. One set of rules holds for folders, zip archives and
CIFAR-100, and for all verbs:

- ``--depth N`` says it: classes are N levels deep, and folders inside them belong to them.
- Else, a folder inside a known class belongs to that class.
- Else, a class is the outermost folder with images of its own; what is inside belongs to it.
  Where such folders are at different depths below one folder of the first level (as
  ``cat/cam 1/2024-05`` and ``cat/cam 2``), that folder is the class.
- A folder of images alone is one class, named as the folder.
- A few images beside folders of classes are left out.
- Parts for training, validation and test are found as :mod:`frugalvae.images.splits` says.

What was assumed is told in ``Listing.notes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from frugalvae.errors import InputError
from frugalvae.formatting import printable, shortened
from frugalvae.images.splits import Folder
from frugalvae.images.walk import HOW
from frugalvae.names import as_label

LOOSE = "in no class's folder"


def find_classes(
    name: str,
    counts: Counter[Folder],
    depth: int | None = None,
    known: Collection[str] = (),
    parts: Collection[str] = ("",),
) -> tuple[dict[Folder, Folder], list[str]]:
    """The class of each folder with images, and what was assumed; loose images have none.

    Parameters
    ----------
    name
        Of all of it, which is the class of images that are in no folder at all.
    counts
        How many images each folder has itself.
    depth, known
        How deep classes are, if that was said; and classes that are known.
    parts
        The folders for training or test that are around all of these, if there are any.

    Examples
    --------
    >>> find_classes("set", Counter({("cat", "may"): 2, ("cat",): 3, ("emu",): 4}))[0]
    {('cat', 'may'): ('cat',), ('cat',): ('cat',), ('emu',): ('emu',)}
    """
    folders = [folder for folder in counts if folder]
    if not folders:
        if {*parts} != {""}:
            raise InputError(
                f"{name}: the images of {', '.join(sorted(parts))}/ are {LOOSE}; {HOW}"
            )
        return {(): (as_label(name),)}, []
    if 2 * counts[()] > counts.total():
        raise InputError(
            f"{name}: {counts[()]:,} images are {LOOSE}, and {counts.total() - counts[()]:,} are "
            f"in folders; {HOW}"
        )
    if depth is not None:
        return {folder: folder[:depth] for folder in folders}, []
    within = {folder: _known(folder, known) for folder in folders}
    new = [folder for folder in folders if not within[folder]]
    within |= _outermost(new)
    return within, _assumed(within)


def _known(folder: Folder, known: Collection[str]) -> Folder:
    """The innermost known class around a folder; nothing if there is none."""
    around = (folder[:level] for level in range(len(folder), 0, -1))
    return next((outer for outer in around if "/".join(outer) in known), ())


def _outermost(folders: Sequence[Folder]) -> dict[Folder, Folder]:
    """Folders with images that are in no other such folder; of mixed depth, the first level."""
    there, depths = set(folders), dict[str, set[int]]()
    within = {}
    for folder in folders:
        around = (folder[:level] for level in range(1, len(folder) + 1))
        within[folder] = next(outer for outer in around if outer in there)
        depths.setdefault(folder[0], set()).add(len(within[folder]))
    return {f: outer if len(depths[f[0]]) == 1 else f[:1] for f, outer in within.items()}


def _assumed(within: dict[Folder, Folder]) -> list[str]:
    """What a user may not have meant, a line each."""
    notes = []
    inner = sorted({folder for folder, outer in within.items() if folder != outer})
    if inner:
        names = shortened(["/".join(folder) for folder in inner])
        deepest = max(map(len, inner))
        notes.append(
            f"folders inside a class belong to it: {names}; --depth {deepest} makes classes of them"
        )
    nested = sorted({"/".join(outer) for outer in within.values() if len(outer) > 1})
    tops = {outer[0] for outer in within.values()}
    if nested:
        hint = "if the first level is the class, give --depth 1"
        if len(tops) == 1:
            hint = f"give the folder {nested[0].split('/')[0]} itself to leave its name out"
        notes.append(f"classes are named by the path of their folder, such as {nested[0]}; {hint}")
    return notes


def check_name(where: str, label: str) -> None:
    """Refuse a folder whose name cannot be a label."""
    if printable(label) != label or not all(label.split("/")):
        raise InputError(
            f"{where}: the folder '{printable(label)}' cannot be a class: its name is blank, has "
            "control characters, or is not UTF-8; rename it"
        )
