"""``frugalvae merge``: add what other classifiers were taught."""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable, size
from frugalvae.labels import as_label, check_case, label_named, like
from frugalvae.model.history import is_last_change, with_digest

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.storage.store import Store

OF = "of"  # the checksum of a file that was merged, in its event of the history


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Add to a classifier what others were taught, apart: the result is what one would be that "
        "was taught everything, whatever the order. If the first file does not exist it is made. "
        "Classes of one name become one class. All files must have the same encoder, memory and "
        "head."
    )
    add(parser, "file", help="the classifier that is changed or made")
    parser.add_argument(
        "inputs", type=Path, nargs="+", metavar="OTHER.frugal", help="what is added; it stays"
    )
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OTHER.frugal:CLASS=NAME",
        help="another name for a class of an added file; may be given again",
    )
    parser.add_argument(
        "--twice",
        action="store_true",
        help="add a file that was added already, or that shares photographs: they count twice",
    )
    add(parser, "--case-matters", "--trust", "--wait", "--json", "--quiet")


@dataclass(frozen=True)
class Addition:
    """A file to be added.

    Attributes
    ----------
    path
        As it was typed.
    checksum
        Of its bytes, which tells whether it was added before.
    model
        What is in it.
    rename
        Other labels for some of its classes.
    """

    path: Path
    checksum: str
    model: Model
    rename: dict[Any, Any]

    @property
    def labels(self) -> list[Any]:
        """Its classes as they are going to be called."""
        return [self.rename.get(label, label) for label in self.model.classes.tolist()]

    @property
    def age(self) -> tuple[str, str]:
        """Sorts files by when they were first taught, whatever the order they were typed in."""
        first = self.model.history[0] if self.model.history else {}
        return str(first.get("when", "")), self.checksum


def run(options: argparse.Namespace) -> None:
    """Merge all files, or none of them."""
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    display = Display(options.quiet or options.json)
    with store.changing(f"frugalvae merge {options.file}", options.wait):
        additions = read(options)
        digest = digest_of_merge(additions)
        model = store.load(empty=True) if store.exists else None
        told: list[dict[str, Any]] = []
        if model is not None and is_last_change(model, digest) and not options.twice:
            display.say(f"{options.file} is as it was: the last change was this very merge")
        else:
            if not options.twice:
                refuse_twice(options.file, store, model, additions)
            with display.watching():
                model, told = merged(options, model, additions)
            store.save(with_digest(model, digest))
        taken, samples = store.path.stat().st_size, int(model.n_samples_of_class.sum())
    known = plural(len(model.classes), "class")
    display.say(
        *map(describe, told),
        f"{options.file}: {known}, {plural(samples, 'sample')}, {size(taken)}",
    )
    if options.json:
        now = {"classes": len(model.classes), "samples": samples, "bytes": taken}
        print_json({"file": str(options.file), "merged": told, **now})


# --------------------------------------------------------------------------- what is added


def read(options: argparse.Namespace) -> list[Addition]:
    """The files that are to be added, each checked; the one that was taught first comes first."""
    from frugalvae.storage.receipts import checksum_of
    from frugalvae.storage.store import Store

    asked = [asked_name(text, options.inputs) for text in options.rename]
    found = []
    for path in options.inputs:
        store = Store(path, trust=options.trust)
        model = store.load()
        names = [text for owner, text in asked if owner == path]
        rename = dict(new_name(path, text, model.classes.tolist()) for text in names)
        found.append(Addition(path, checksum_of(store.path), model, rename))
    return sorted(found, key=lambda addition: addition.age)


def asked_name(text: str, inputs: list[Path]) -> tuple[Path, str]:
    """``b.frugal:wren=house wren`` as the file, and what is said of it."""
    for path in sorted(inputs, key=lambda path: -len(str(path))):
        if text.startswith(f"{path}:") and "=" in text:
            return path, text.removeprefix(f"{path}:")
    raise InputError(
        f"--rename {text}: expected OTHER.frugal:CLASS=NAME with one of the files that are added, "
        f"such as {inputs[0]}:wren=house-wren"
    )


def new_name(path: Path, text: str, labels: list[Any]) -> tuple[Any, Any]:
    """``wren=house wren`` as the label in the file and the new one; names may have a ``=``."""
    known = set(map(str, labels))
    places = [place for place, letter in enumerate(text) if letter == "="]
    fitting = [place for place in places if as_label(text[:place]) in known]
    place = (fitting or places)[0]
    old = label_named(path, labels, text[:place])
    return old, like(old, text[place + 1 :])


# --------------------------------------------------------------------------- never twice


def digest_of_merge(additions: list[Addition]) -> str:
    """What tells a merge from any other: a killed one that is repeated must not count twice."""
    told = [(addition.checksum, addition.labels) for addition in additions]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


def refuse_twice(
    target: Path, store: Store, model: Model | None, additions: list[Addition]
) -> None:
    """Refuse files of which one holds what another one holds."""
    from frugalvae.storage.receipts import checksum_of

    held = [(addition.path, addition.checksum, addition.model) for addition in additions]
    if model is not None:
        held.insert(0, (target, checksum_of(store.path), model))
    parts = [
        (path, {checksum, *(str(event[OF]) for event in model.history if OF in event)})
        for path, checksum, model in held
    ]
    for place, (path, inside) in enumerate(parts):
        for other, others in parts[:place]:
            if inside & others:
                raise InputError(
                    f"{path} and {other} are the same, or hold the same file: its samples would "
                    "count twice. Nothing was changed; leave one out, or give --twice if it is "
                    "meant so"
                )


# --------------------------------------------------------------------------- what comes of it


def merged(
    options: argparse.Namespace, target: Model | None, additions: list[Addition]
) -> tuple[Model, list[dict[str, Any]]]:
    """The model with all additions, and what is told of each."""
    from frugalvae.encoders.remembered import check_carried
    from frugalvae.model import merging
    from frugalvae.model.model import Model

    told, model = [], target or Model(additions[0].model.recipe)
    for addition in additions:
        known, labels = set(model.classes.tolist()), addition.labels
        new = [label for label in labels if label not in known]
        try:
            if not model.encoder:  # then it takes that of the other
                check_carried(addition.model.encoder, options.trust, addition.path)
            if not options.case_matters:
                check_case(map(str, new), map(str, known))
            model = merging.merge(model, addition.model, addition.rename, twice=options.twice)
        except InputError as error:
            raise InputError(
                f"{addition.path} cannot be merged into {options.file}: {error}"
            ) from error
        *before, last = model.history
        event = {**last, "source": printable(addition.path.name), OF: addition.checksum}
        model = replace(model, history=(*before, event))
        told.append(
            {
                "file": str(addition.path),
                "new": list(map(str, new)),
                "known": [str(label) for label in labels if label in known],
                "samples": int(addition.model.n_samples_of_class.sum()),
            }
        )
    return model, told


def describe(told: dict[str, Any]) -> str:
    """What was added, in a line.

    >>> told = {"file": "b.frugal", "new": ["wren"], "known": ["emu"], "samples": 24}
    >>> describe(told)
    'b.frugal: 24 samples of 1 new class and 1 known class'
    """
    parts = [plural(len(told[kind]), f"{kind} class") for kind in ("new", "known") if told[kind]]
    samples = plural(told["samples"], "sample")
    return f"{told['file']}: {samples} of {' and '.join(parts)}"
