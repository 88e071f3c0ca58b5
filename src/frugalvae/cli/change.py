"""``frugalvae update``, ``rename``, ``forget`` and ``undo``: change what a classifier knows."""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.argument_types import quiet
from frugalvae.cli.options import classifier_file, complain, waiting, which_encoder
from frugalvae.formatting import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.console import Display
    from frugalvae.model import Model
    from frugalvae.storage.store import Store


DIGEST = "digest"  # of the samples of an update, in its event of the history


def add_changes(verbs: Any) -> None:
    """The options of ``update``, ``rename``, ``forget`` and ``undo``."""
    parents = [classifier_file(), waiting(), quiet()]
    update = verbs.add_parser(
        "update",
        help="more examples of a known class",
        parents=[*parents, which_encoder()],
        description="Learn more examples of a known class, from images, folders of them, or "
        "feature files (.npz: the array x, or the class's rows of x_train).",
    )
    update.add_argument("label", metavar="CLASS")
    update.add_argument("inputs", type=Path, nargs="+", metavar="IMAGES", help="or FEATURES.npz")
    update.set_defaults(run=run_update)

    rename = verbs.add_parser("rename", help="another name for a class", parents=parents)
    rename.add_argument("label", metavar="CLASS")
    rename.add_argument("name", metavar="NEW_NAME")
    rename.add_argument(
        "--case-matters",
        action="store_true",
        help="the new name may differ from another's only in upper and lower case",
    )
    rename.set_defaults(run=run_rename)

    forget = verbs.add_parser(
        "forget",
        help="take a class out",
        parents=parents,
        description="Take a class out of a classifier, and say what remains of it.",
    )
    forget.add_argument("label", metavar="CLASS")
    forget.add_argument(
        "--scrub",
        action="store_true",
        help="relearn what was shared, so that nothing trained on it is left, nor anything to undo",
    )
    forget.set_defaults(run=run_forget)

    undo = verbs.add_parser(
        "undo",
        help="undo the last change",
        parents=parents,
        description="Put back the file as it was before the last change. One step is kept.",
    )
    undo.set_defaults(run=run_undo)


def opened(options: argparse.Namespace) -> tuple[Store, Model, Any]:
    """The file, what is in it, and the class that was named."""
    from frugalvae.cli.summary import label_named
    from frugalvae.storage.store import Store

    store = Store(options.file)
    model = store.load()
    label = label_named(options.file, model.classes.tolist(), options.label)
    return store, model, label


def run_update(options: argparse.Namespace) -> None:
    """``frugalvae update``."""
    from frugalvae.cli.learn import say_model_of_head, with_source
    from frugalvae.console import Display
    from frugalvae.storage.store import Store

    display = Display(options.quiet)
    with Store(options.file).changing(f"frugalvae update {options.file}", options.wait):
        store, model, label = opened(options)
        x = more_rows(options, label, model.encoder, display)
        given, digest = plural(len(x), "more example"), digest_of(label, x)
        if model.history and model.history[-1].get(DIGEST) == digest:
            display.say(
                f"{options.file} is as it was: the last change was this very update, in which "
                f"{label!r} was given {given}"
            )
            return
        say_model_of_head(model, options.model, options.file)
        with display.watching():
            model = model.update(label, x)
        store.save(with_digest(with_source(model, options.inputs[0]), digest))
    display.say(f"{options.file}: {label!r} was given {given}")


def digest_of(label: Any, x: NDArray[np.float32]) -> str:
    """What tells an update from any other: a killed one that is repeated must not count twice."""
    return hashlib.sha256(repr((label, x.shape)).encode() + x.tobytes()).hexdigest()[:16]


def with_digest(model: Model, digest: str | None = None) -> Model:
    """With the digest in the last event of the history, and in no other."""
    history = [{k: v for k, v in event.items() if k != DIGEST} for event in model.history]
    if digest is not None:
        history[-1][DIGEST] = digest
    return replace(model, history=tuple(history))


def more_rows(
    options: argparse.Namespace, label: Any, remembered: Any, display: Display
) -> NDArray[np.float32]:
    """Features of all inputs that can be read; the others are named."""
    from frugalvae.cli.inputs import gather
    from frugalvae.cli.rows import rows_of_class
    from frugalvae.errors import InputError
    from frugalvae.images.unreadable import named

    _, x, skipped = gather(
        options, remembered, lambda path: rows_of_class(path, label), display.watching()
    )
    if skipped:
        say = complain if options.quiet else display.say  # what is lost is told in any case
        say("\n".join([f"left out as unreadable, {len(skipped):,}:", *named(skipped)]))
    if not len(x):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    return x


def run_rename(options: argparse.Namespace) -> None:
    """``frugalvae rename``."""
    from frugalvae.console import Display
    from frugalvae.images.folders import as_label, check_case
    from frugalvae.storage.store import Store

    with Store(options.file).changing(f"frugalvae rename {options.file}", options.wait):
        store, model, label = opened(options)
        name: Any = as_label(options.name)
        if not isinstance(label, str) and name.lstrip("-").isdecimal():
            name = int(name)
        others = [str(known) for known in model.classes.tolist() if known != label]
        if not options.case_matters:
            check_case([str(name)], others)
        store.save(model.rename(label, name))
    Display(options.quiet).say(f"{options.file}: {label!r} is called {name!r} now")


def run_forget(options: argparse.Namespace) -> None:
    """``frugalvae forget``."""
    from frugalvae.cli.learn import say_model_of_head
    from frugalvae.console import Display
    from frugalvae.storage.store import Store

    display = Display(options.quiet)
    with Store(options.file).changing(f"frugalvae forget {options.file}", options.wait):
        store, model, label = opened(options)
        if options.scrub:  # which learns anew
            say_model_of_head(model, None, options.file)
        with display.watching():
            model, remains = model.forget(label, scrub=options.scrub)
        store.save(with_digest(model), undoable=not options.scrub)
    left = plural(len(model.classes), "class")
    display.say(f"{options.file}: {label!r} is forgotten; {left} left")
    for sentence in remains:
        display.say(f"what remains of it: {sentence}")
    if not options.scrub:
        display.say(f"{store.undo.name} has it still, until the next change, for 'frugalvae undo'")
    else:
        display.say("this cannot be undone; copies of the file elsewhere are as they were")
    display.say("its name stays in the history")


def run_undo(options: argparse.Namespace) -> None:
    """``frugalvae undo``."""
    from frugalvae.console import Display
    from frugalvae.errors import MemoryFileError
    from frugalvae.storage.store import Store

    store, display = Store(options.file), Display(options.quiet)
    with store.changing(f"frugalvae undo {options.file}", options.wait):
        before = store.read_undo().document
        try:
            lines = difference(store.read().document, before)
        except MemoryFileError as error:
            lines = [f"undone, as it could not be read: {error}"]
        store.go_back()
    for line in [*lines, f"{options.file} is as it was before that"]:
        display.say(line)


def difference(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What going back takes away, and what it brings back."""
    from frugalvae.cli.status import told
    from frugalvae.formatting import shortened

    lines = []
    if len(now["history"]) > len(before["history"]):
        lines.append(f"undone: {told(now['history'][-1])}")
    labels = [[str(label) for label in file["classes"]["values"]] for file in (now, before)]
    gone = [label for label in labels[0] if label not in labels[1]]
    back = [label for label in labels[1] if label not in labels[0]]
    for what, names in (("not known any more", gone), ("known again", back)):
        if names:
            lines.append(f"{what}: {shortened(names)}")
    return lines
