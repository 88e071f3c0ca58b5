"""``frugalvae update``, ``rename``, ``forget`` and ``undo``: change what a classifier knows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.argument_types import quiet, strict
from frugalvae.cli.options import as_json, classifier_file, waiting, which_encoder
from frugalvae.cli.output import complain, print_json
from frugalvae.formatting import plural

if TYPE_CHECKING:
    from frugalvae.cli.inputs import Gathered
    from frugalvae.console import Display
    from frugalvae.model import Model
    from frugalvae.storage.store import Store


def add_changes(verbs: Any) -> None:
    """The options of the verbs that change a known class, and of ``undo``."""
    parents = [classifier_file(), waiting(), quiet()]
    update = verbs.add_parser(
        "update",
        help="more examples of a known class",
        parents=[*parents, which_encoder(), strict(), as_json()],
        description="Learn more examples of a known class, from images, folders or zip archives "
        "of them, or feature files (.npz: the array x, or the class's rows of x_train).",
    )
    update.add_argument(
        "--flat",
        action="store_true",
        help="take all images of a folder, even if folders in it are named as other classes",
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
        help="take the last change back",
        parents=parents,
        description="Put back what the file was before the last change. One step is kept.",
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

    display = Display(options.quiet or options.json)
    with Store(options.file).changing(f"frugalvae update {options.file}", options.wait):
        store, model, label = opened(options)
        given = more_rows(options, label, model, display)
        say_model_of_head(model, options.model, options.file)
        with display.watching():
            model = model.update(label, given.x)
        store.save(with_source(model, options.inputs[0]))
    display.say(f"{options.file}: {label!r} was given {plural(len(given.x), 'more example')}")
    if options.json:
        told = {"unreadable": given.unreadable, "skipped": given.skipped}
        known = {"file": str(options.file), "class": label, "examples": len(given.x)}
        print_json({**known, **told})


def more_rows(options: argparse.Namespace, label: Any, model: Model, display: Display) -> Gathered:
    """Features of all inputs that can be read; the others are named."""
    from frugalvae.cli.inputs import gather, one_class
    from frugalvae.cli.rows import rows_of_class
    from frugalvae.errors import InputError
    from frugalvae.images.left_out import counted, named, refuse

    look = one_class(label, model.classes.tolist(), options.flat, display.say)
    given = gather(
        options, model.encoder, lambda path: rows_of_class(path, label), display.watching(), look
    )
    if options.strict:
        refuse(given.skipped | given.unreadable)
    for line in counted(given.skipped):
        display.say(line)
    if given.unreadable:
        say = complain if options.quiet else display.say  # what is lost is told in any case
        number = f"{len(given.unreadable):,}"
        say("\n".join([f"left out as unreadable, {number}:", *named(given.unreadable)]))
    if not len(given.x):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    return given


def run_rename(options: argparse.Namespace) -> None:
    """``frugalvae rename``."""
    from frugalvae.console import Display
    from frugalvae.names import as_label, check_case
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
        store.save(model, undoable=not options.scrub)
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
    from frugalvae.cli.summary import read_file
    from frugalvae.console import Display
    from frugalvae.storage.store import Store

    store = Store(options.file)
    with store.changing(f"frugalvae undo {options.file}", options.wait):
        store.check_undo()
        now, before = (read_file(file)[0] for file in (store, Store(store.undo)))
        store.go_back()
    display = Display(options.quiet)
    for line in [*difference(now, before), f"{options.file} is as it was before that"]:
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
