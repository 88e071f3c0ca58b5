"""Verbs that change a classifier's file and teach nothing, and ``history``, which lists changes.

Each is two functions: what may be typed, such as ``add_undo``, and what is done, such as ``undo``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add, add_encoder, choice, flag, refuse_encoder, value
from frugalvae.console import Display, print_error, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import local_time, plural, printable, quoted, shortened, size
from frugalvae.images import holds_features
from frugalvae.labels import FOLDERS, as_label, label_named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model
    from frugalvae.samples import Samples
    from frugalvae.storage.store import Store

COUNTED = "familiarity, and how sure answers are, still include them"


@contextmanager
def change_class(options: argparse.Namespace) -> Iterator[tuple[Store, Model, Any]]:
    """The file, the model in it, and the class that was named; no one else changes the file."""
    from frugalvae.storage.store import Store

    trust = choice(options).named if hasattr(options, "model") else options.trust
    store = Store(options.file, trust=trust)
    with store.changing(f"frugalvae {options.verb} {options.file}", options.wait):
        model = store.load()
        yield store, model, label_named(options.file, model.classes.tolist(), options.label)


@dataclass(frozen=True)
class Gathered:
    """Features (n, d) of what was given of a class, their digests, and what was left out.

    The last of the rows are of ``images``; those before are of feature files.
    """

    x: NDArray[np.float32]
    digests: NDArray[np.bytes_]
    images: list[str]
    unreadable: dict[str, str]
    skipped: dict[str, str]


def add_samples(parser: argparse.ArgumentParser) -> None:
    """The images, and how they are read."""
    parser.add_argument(
        "inputs", type=Path, nargs="+", metavar="IMAGES", help="an image, a folder or FEATURES.npz"
    )
    parser.add_argument(
        "--flat",
        action="store_true",
        help="take all images of a folder, even if folders in it are named after other classes",
    )
    add(parser, "--strict")
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--wait", "--json", "--quiet")


def more_rows(options: argparse.Namespace, label: Any, model: Model, display: Display) -> Gathered:
    """Features of all inputs that can be read; the others are named."""
    import numpy as np

    from frugalvae.samples import counted, named, open_unlabelled, refuse

    if all(map(holds_features, options.inputs)):
        refuse_encoder(options, options.inputs[0])
    rows, digests, images = [], [], list[str]()
    unreadable, skipped = dict[str, str](), dict[str, str]()
    with open_unlabelled(options.inputs, "x_train", label) as groups:
        for samples in groups:
            if samples.files is not None:
                check_one_class(options, samples, label, model.classes.tolist(), display.say)
        for samples in groups:
            encoder, _ = samples.encoder(model.encoder, choice(options), options.file)
            with display.watching():
                done = samples.encode(encoder, options.batch_size)
                digests.append(samples.at(done.places).digests())
            rows.append(done.features)
            unreadable |= {samples.names[place]: why for place, why in done.reasons.items()}
            skipped |= samples.skipped
            images += [samples.names[place] for place in done.places] if encoder else []
    if options.strict:
        refuse(skipped | unreadable)
    display.say(*counted(skipped))
    if unreadable:
        say = print_error if options.quiet else display.say  # what is lost is told in any case
        say("\n".join([f"left out as unreadable, {len(unreadable):,}:", *named(unreadable)]))
    if not sum(map(len, rows)):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    x = np.concatenate([part for part in rows if len(part)])
    return Gathered(x, np.concatenate(digests), images, unreadable, skipped)


def check_one_class(
    options: argparse.Namespace,
    samples: Samples,
    label: Any,
    classes: Sequence[Any],
    say: Callable[[str], object],
) -> None:
    """Refuse a folder in which there are folders of other classes than the one that is meant."""
    from frugalvae.samples import is_folder

    others = {*map(str, classes)} - {str(label)}
    for path in filter(is_folder, options.inputs):
        inside = [PurePath(name).relative_to(path) for name in samples.names if under(name, path)]
        inner = {part for found in inside for part in found.parts[:-1]}
        own = {part for part in inner if as_label(part) == str(label)}
        beside = inner - own if own else set()
        named = {*inner, path.resolve().name}
        wrong = sorted({part for part in named if as_label(part) in others} | beside)
        if wrong and not options.flat:
            raise InputError(
                f"{path} is or has folders of other classes: {shortened(wrong)}; give the folder "
                f"of {str(label)!r} alone, or --flat if all of it is {str(label)!r}"
            )
        if inner:
            folders = plural(len({found.parent for found in inside}), "folder")
            say(f"{path}: {plural(len(inside), 'image')} of {folders} are taken")


def under(name: str, folder: Path) -> bool:
    """Whether a file is inside a folder or an archive."""
    return folder in PurePath(name).parents


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
    Display(options.quiet).say(f"{options.file}: {label!r} is now called {changed.label!r}")


def add_merge_classes(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "label")
    about = "a class that becomes part of it"
    parser.add_argument("others", nargs="+", metavar="OTHER_CLASS", help=about)
    add(parser, "--trust", "--wait", "--json", "--quiet")


def merge_classes(options: argparse.Namespace) -> None:
    """Make one class of several.

    The samples of the others then belong to the first one, as if they had been learned as that
    class. Needs memory 'moments' with head 'bayes', the default.
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
    add(parser, "file", help="the classifier that is changed, or made if it does not exist")
    about = "a classifier that is added; it stays as it is"
    parser.add_argument("inputs", type=Path, nargs="+", metavar="OTHER.frugal", help=about)
    about = "another name for a class of an added file; may be repeated"
    value(parser, "--rename", "OTHER.frugal:CLASS=NAME", about, action="append", default=[])
    about = "also add a file that was added before or shares photographs, which then count twice"
    flag(parser, "--twice", about)
    add(parser, "--case-matters", "--trust", "--wait", "--json", "--quiet")


def merge(options: argparse.Namespace) -> None:
    """Add to a classifier what others have learned.

    The result is as if one classifier had learned everything; the order does not matter. Classes
    with the same name become one class. All files must have the same encoder, memory and head.
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
    add(parser, "file", "label")
    add_samples(parser)


def unlearn(options: argparse.Namespace) -> None:
    """Remove images from a class that it was taught.

    The class's count, mean and scatter become what they would be without them. Give images,
    folders or zip archives of them, or feature files (.npz: the array x, or the rows of x_train
    that belong to the class). To remove all images of a class, use 'forget --with'.
    """
    from frugalvae.verbs import changes

    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        found = more_rows(options, label, model, display)
        source, before = options.inputs[0].resolve().name, model
        how: dict[str, Any] = {"source": source, "images": found.images}
        model = changes.unlearn(before, label, found.x, found.digests, **how).model
        taken = 0 if model is before else len(found.x)
        if taken:
            store.save(model)
    left, remains = samples_of(model, label), [*model.history[-1]["remains"], COUNTED]
    if taken:
        display.say(
            f"{options.file}: {plural(taken, 'sample')} of {label!r} removed, {left:,} left; "
            "count, mean and scatter are as if they had not been learned",
            *(f"what remains: {sentence}" for sentence in remains),
            "their digests are kept, so 'frugalvae learn' leaves them out if they are still in a "
            f"folder of {label!r}; --again {quoted(str(label))} learns them",
        )
    else:
        display.say(f"{options.file} is as it was: the last change was this very one")
    if options.json:
        result = {"class": label, "taken_out": taken, "left": left, "remains": remains}
        print_json({"file": str(options.file), **result})


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
        "statistics that all classes share is subtracted exactly",
    )
    about = (
        "also relearn what all classes share, from samples of the memory, so that nothing that was "
        "trained on the class is left; this cannot be undone"
    )
    flag(parser, "--scrub", about)
    about = "with --with: take all images of a folder, even if folders in it are named after other "
    flag(parser, "--flat", f"{about}classes")
    add_encoder(parser, remembered=True)
    add(parser, "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(strict=False)


def forget(options: argparse.Namespace) -> None:
    """Remove a class from a classifier, and print a receipt.

    The receipt lists what was removed, what remains, and the file's checksum before and after.
    """
    from frugalvae.verbs import changes

    if options.scrub and options.inputs:
        raise InputError("--with subtracts exactly what --scrub would estimate; give one of them")
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
        "its name stays in the history; 'frugalvae learn' leaves out folders of that name, unless "
        f"--again {quoted(str(label))} is given",
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
    from frugalvae.model.history import in_words

    when = local_time(str(event.get("when", "")))
    return f"{when}  {event.get('action', '?')!s:{width}}  {in_words(event)}"
