"""``frugalvae update``: give more examples of a known class."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add_file,
    add_json,
    add_label,
    add_quiet,
    add_same_encoder,
    add_strict,
    add_trust,
    add_wait,
    refuse_encoder,
)
from frugalvae.cli.output import complain, print_json
from frugalvae.formatting import plural

if TYPE_CHECKING:
    from frugalvae.cli.inputs import Gathered
    from frugalvae.console import Display
    from frugalvae.model import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn more examples of a known class, from images, folders or zip archives of them, or "
        "feature files (.npz: the array x, or the rows of x_train that belong to the class)."
    )
    add_file(parser)
    add_label(parser)
    parser.add_argument(
        "inputs", type=Path, nargs="+", metavar="IMAGES", help="an image, a folder or FEATURES.npz"
    )
    parser.add_argument(
        "--flat",
        action="store_true",
        help="take all images of a folder, even if folders in it are named after other classes",
    )
    add_strict(parser)
    add_same_encoder(parser)
    add_trust(parser)
    add_wait(parser)
    add_json(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Learn the new examples."""
    from frugalvae.cli.change import (
        DIGEST,
        announce_model,
        change_class,
        digest_of,
        with_digest,
        with_source,
    )
    from frugalvae.console import Display

    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        gathered = more_rows(options, label, model, display)
        x = gathered.x
        given, digest = plural(len(x), "more example"), digest_of(label, x)
        if model.history and model.history[-1].get(DIGEST) == digest:
            display.say(
                f"{options.file} is as it was: the last change was this very update, in which "
                f"{label!r} was given {given}"
            )
            return
        announce_model(model, options.model, options.file)
        with display.watching():
            model = model.update(label, x)
        store.save(with_digest(with_source(model, options.inputs[0]), digest))
    display.say(f"{options.file}: {label!r} was given {given}")
    if options.json:
        told = {"unreadable": gathered.unreadable, "skipped": gathered.skipped}
        print_json({"file": str(options.file), "class": label, "examples": len(x), **told})


def more_rows(options: argparse.Namespace, label: Any, model: Model, display: Display) -> Gathered:
    """Features of all inputs that can be read; the others are named."""
    from frugalvae.cli.inputs import gather, one_class
    from frugalvae.cli.rows import rows_of_class
    from frugalvae.errors import InputError
    from frugalvae.images.listing import counted, named, refuse

    if all(path.suffix == ".npz" for path in options.inputs):
        refuse_encoder(options, options.inputs[0])
    look = one_class(label, model.classes.tolist(), options.flat, display.say)
    given = gather(
        options, model.encoder, lambda path: rows_of_class(path, label), display.watching(), look
    )
    if options.strict:
        refuse(given.skipped | given.unreadable)
    display.say_lines(counted(given.skipped))
    if given.unreadable:
        say = complain if options.quiet else display.say  # what is lost is told in any case
        number = f"{len(given.unreadable):,}"
        say("\n".join([f"left out as unreadable, {number}:", *named(given.unreadable)]))
    if not len(given.x):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    return given
