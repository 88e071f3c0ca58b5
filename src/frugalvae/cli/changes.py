"""Verbs that change a classifier's file and teach nothing, and ``history``, which lists changes.

Each is two functions: what may be typed, such as ``add_undo``, and what is done, such as ``undo``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add, add_encoder, choice, flag, value
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import local_time, plural, printable, quoted, shortened, size
from frugalvae.labels import FOLDERS, label_named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model
    from frugalvae.storage.store import Store

COUNTED = "familiarity and how sure answers are still count how they looked when they were taught"


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    from frugalvae.storage.store import Store

    trust = choice(options).named if hasattr(options, "model") else options.trust
    store = Store(options.file, trust=trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)


# --------------------------------------------------------------------------- names


def add_rename(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "label")
    parser.add_argument("name", metavar="NEW_NAME", help="its new name")
    add(parser, "--case-matters", "--trust", "--wait", "--quiet")


def rename(options: argparse.Namespace) -> None:
    """Give a class another name. What was learned about it stays."""
    from frugalvae.verbs import changes

    how: dict[str, Any] = {"case_matters": options.case_matters, "advice": FOLDERS}
    with change_class(options) as (store, model, label):
        changed = changes.rename(model, label, options.name, **how)
        store.save(changed.model)
    Display(options.quiet).say(f"{options.file}: {label!r} is called {changed.label!r} now")


def add_merge_classes(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "label")
    about = "what becomes part of it"
    parser.add_argument("others", nargs="+", metavar="OTHER_CLASS", help=about)
    add(parser, "--trust", "--wait", "--json", "--quiet")


def merge_classes(options: argparse.Namespace) -> None:
    """Make one class of several.

    The samples of the others belong to the first one from now on, as if they had been taught so.
    Needs memory 'moments' with head 'bayes', the default.
    """
    from frugalvae.verbs import changes

    with change_class(options) as (store, model, label):
        known = model.classes.tolist()
        joined = [label_named(options.file, known, text) for text in options.others]
        model = changes.merge_classes(model, label, joined).model
        store.save(model)
    samples, classes = samples_of(model, label), len(model.classes)
    Display(options.quiet or options.json).say(
        f"{options.file}: {' and '.join(map(repr, joined))} became part of {label!r}, which has "
        f"{plural(samples, 'sample')} now; {plural(classes, 'class')} in all"
    )
    if options.json:
        result = {"class": label, "joined": joined, "samples": samples, "classes": classes}
        print_json({"file": str(options.file), **result})


def samples_of(model: Model, label: Any) -> int:
    """How many samples a class was taught."""
    return int(model.n_samples_of_class[model.classes.tolist().index(label)])


# --------------------------------------------------------------------------- other files


def add_merge(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", help="the classifier that is changed or made")
    about = "what is added; it stays"
    parser.add_argument("inputs", type=Path, nargs="+", metavar="OTHER.frugal", help=about)
    about = "another name for a class of an added file; may be given again"
    value(parser, "--rename", "OTHER.frugal:CLASS=NAME", about, action="append", default=[])
    about = "add a file that was added already, or that shares photographs: they count twice"
    flag(parser, "--twice", about)
    add(parser, "--case-matters", "--trust", "--wait", "--json", "--quiet")


def merge(options: argparse.Namespace) -> None:
    """Add to a classifier what others were taught, apart.

    The result is what one would be that was taught everything, whatever the order. If the first
    file does not exist it is made. Classes of one name become one class. All files must have the
    same encoder, memory and head.
    """
    from frugalvae.storage.store import Store
    from frugalvae.verbs.merge import merge as merge_files

    store = Store(options.file, trust=options.trust)
    display = Display(options.quiet or options.json)
    rename = dict[Path, list[str]]()
    for text in options.rename:
        path, name = split_name(text, options.inputs)
        rename.setdefault(path, []).append(name)
    with store.changing(f"frugalvae merge {options.file}", options.wait), display.watching():
        how = {"twice": options.twice, "case_matters": options.case_matters}
        found = merge_files(store, options.inputs, rename=rename, trust=options.trust, **how)
    if not found.merged:
        display.say(f"{options.file} is as it was: the last change was this very merge")
    known, samples = plural(found.classes, "class"), plural(found.samples, "sample")
    display.say(*map(str, found.merged), f"{options.file}: {known}, {samples}, {size(found.bytes)}")
    if options.json:
        print_json(found.to_json())


def split_name(text: str, inputs: list[Path]) -> tuple[Path, str]:
    """``b.frugal:wren=house wren`` as the file, and what its class is to be called."""
    for path in sorted(inputs, key=lambda path: -len(str(path))):
        if text.startswith(f"{path}:") and "=" in text:
            return path, text.removeprefix(f"{path}:")
    raise InputError(
        f"--rename {text}: expected OTHER.frugal:CLASS=NAME with one of the files that are added, "
        f"such as {inputs[0]}:wren=house-wren"
    )


# --------------------------------------------------------------------------- what is taken out


def add_unlearn(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    from frugalvae.cli.update import add_samples

    add(parser, "file", "label")
    add_samples(parser)


def unlearn(options: argparse.Namespace) -> None:
    """Take images of a class out again that it was taught.

    Count, mean and scatter become what they would be without them. Takes images, folders or zip
    archives of them, or feature files (.npz), as 'update' does. To take out all images of a class,
    use 'forget --with'.
    """
    from frugalvae.cli.update import more_rows
    from frugalvae.model.history import digest_of, is_last_change
    from frugalvae.verbs import changes

    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        found = more_rows(options, label, model, display)
        repeated, taken = is_last_change(model, digest_of(("unlearn", label), found.x)), 0
        if not repeated:  # such as a command that was killed, and typed again
            refuse_never_taught(model, label, found.images, found.digests)
            source, taken = options.inputs[0].resolve().name, len(found.x)
            model = changes.unlearn(model, label, found.x, found.digests, source=source).model
            store.save(model)
    left, remains = samples_of(model, label), [*model.history[-1]["remains"], COUNTED]
    if taken:
        display.say(
            f"{options.file}: {plural(taken, 'sample')} of {label!r} taken out, {left:,} left; "
            "mean, count and scatter are as without them",
            *(f"what remains: {sentence}" for sentence in remains),
            "their digests are kept, so that 'frugalvae learn' leaves them out where they are "
            f"still in a folder of {label!r}; --again {quoted(str(label))} teaches them",
        )
    else:
        display.say(f"{options.file} is as it was: the last change was this very one")
    if options.json:
        result = {"class": label, "taken_out": taken, "left": left, "remains": remains}
        print_json({"file": str(options.file), **result})


def refuse_never_taught(
    model: Model, label: Any, images: list[str], digests: NDArray[np.bytes_]
) -> None:
    """Refuse images that the class was never taught, where all that it was taught is known.

    The last of the digests are theirs; those before are of feature files.
    """
    from frugalvae.digests import among
    from frugalvae.model.plan import recognisable, taught_digests

    if not images or not recognisable(model, label):
        return
    known = among(digests[-len(images) :], taught_digests(model, label))
    strange = [name for name, there in zip(images, known, strict=True) if not there]
    if strange:
        raise InputError(
            f"{label!r} was never taught {shortened(strange)}; give images that it was taught, as "
            "they were then"
        )


def add_forget(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "label")
    parser.add_argument(
        "--with",
        dest="inputs",
        type=Path,
        nargs="+",
        metavar="IMAGES",
        help="all images that the class was taught, or FEATURES.npz of them: what they added to "
        "parts that all classes share is taken out exactly",
    )
    about = (
        "also relearn the parts that all classes share, so that nothing that was trained on the "
        "class is left; this cannot be undone"
    )
    flag(parser, "--scrub", about)
    about = "with --with: take all images of a folder, even if folders in it are named after other "
    flag(parser, "--flat", f"{about}classes")
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(strict=False)


def forget(options: argparse.Namespace) -> None:
    """Remove a class from a classifier, and print a receipt.

    It says what was removed, what remains of it, and the checksum of the file before and after.
    """
    from frugalvae.cli.update import more_rows
    from frugalvae.verbs import changes

    if options.scrub and options.inputs:
        raise InputError("--with takes out exactly what --scrub would estimate; give one of them")
    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        x = more_rows(options, label, model, display).x if options.inputs else None
        with display.watching():
            found = changes.forget(store, model, label, x, scrub=options.scrub)
    known, receipt = len(found.model.classes), found.receipt
    left = plural(known, "class") if known else "no class"
    display.say(
        f"{options.file}: {label!r} is forgotten; {left} left",
        f"removed: {plural(receipt['samples'], 'sample')}, {receipt['bytes']:,} bytes of the file, "
        f"{local_time(receipt['when'])}",
        *(f"what remains of it: {sentence}" for sentence in receipt["remains"]),
        *(
            f"{name}: {receipt[name]['bytes']:,} bytes, sha256 {receipt[name]['sha256']}"
            for name in ("before", "after")
        ),
        "this cannot be undone; copies of the file elsewhere are as they were"
        if options.scrub
        else f"'frugalvae undo' brings it back, from {store.undo.name}, until you change the file "
        "again",
        "its name stays in the history; 'frugalvae learn' leaves out folders of that name, but for "
        f"--again {quoted(str(label))}",
    )
    if options.json:
        print_json({"file": str(options.file), **receipt})


# --------------------------------------------------------------------------- what was done


def add_undo(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "--trust", "--wait", "--quiet")


def undo(options: argparse.Namespace) -> None:
    """Put the file back as it was before the last change.

    One step is kept: undo cannot be undone.
    """
    from frugalvae.storage.store import Store
    from frugalvae.verbs import changes

    store = Store(options.file, trust=options.trust)
    with store.changing(f"frugalvae undo {options.file}", options.wait):
        found = changes.undo(store)
    lines = [f"undone: {describe_event(found.event)}"] if found.event else []
    lines += [f"undone, as it could not be read: {found.problem}"] if found.problem else []
    lines += [f"no longer known: {shortened(found.gone)}"] if found.gone else []
    lines += [f"known again: {shortened(found.back)}"] if found.back else []
    empty = ": it knows no class" if found.empty else ""
    Display(options.quiet).say(*lines, f"{options.file} is as it was before that{empty}")


def add_history(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "--json")


def history(options: argparse.Namespace) -> None:
    """List every change of a classifier: what was learned, when, and from what."""
    from frugalvae.storage.store import Store

    events = Store(options.file).read().document["history"]
    if options.json:
        print_json(events)
        return
    width = max((len(str(event.get("action", "?"))) for event in events), default=0)
    for event in events:
        print(printable(describe_event(event, width)))
    if not events:
        print(f"{options.file} has no history: it was written without one")


def describe_event(event: dict[str, Any], width: int = 6) -> str:
    """An event in a line, its action in so many letters.

    >>> describe_event({"action": "learn", "when": "2026-11-16 5:00", "classes": {"emu": 30}})
    '2026-11-16 5:00  learn   emu (30)'
    """
    from frugalvae.storage.summary import in_words

    when = local_time(str(event.get("when", "")))
    return f"{when}  {event.get('action', '?')!s:{width}}  {in_words(event)}"
