"""``frugalvae update``: give more examples of a known class."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add, add_encoder, holds_features, refuse_encoder
from frugalvae.console import Display, complain, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, shortened
from frugalvae.history import digest_of, is_last_change, with_digest, with_source
from frugalvae.labels import as_label

if TYPE_CHECKING:
    from frugalvae.cli.inputs import Gathered, Look
    from frugalvae.images.walk import Found
    from frugalvae.model import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn more examples of a known class, from images, folders or zip archives of them, or "
        "feature files (.npz: the array x, or the rows of x_train that belong to the class)."
    )
    add(parser, "file", "label")
    add_samples(parser)


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


def run(options: argparse.Namespace) -> None:
    """Learn the new examples."""
    from frugalvae.cli.common import change_class
    from frugalvae.intake import taught_digests
    from frugalvae.taught import among

    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        gathered = more_rows(options, label, model, display)
        x = gathered.x
        given, digest = plural(len(x), "more example"), digest_of(label, x)
        if is_last_change(model, digest):
            display.say(
                f"{options.file} is as it was: the last change was this very update, in which "
                f"{label!r} was given {given}"
            )
            report(options, label, 0, gathered)
            return
        again = int(among(gathered.digests, taught_digests(model, label)).sum())
        if again:
            display.say(f"{plural(again, 'example')} taught before, and counted once more")
        with display.watching():
            model = model.update(label, x, digests=gathered.digests)
        store.save(with_digest(with_source(model, options.inputs[0].resolve().name), digest))
    display.say(f"{options.file}: {label!r} was given {given}")
    report(options, label, len(x), gathered)


def report(options: argparse.Namespace, label: Any, examples: int, gathered: Gathered) -> None:
    """Print JSON, if that was asked for."""
    if options.json:
        told = {"unreadable": gathered.unreadable, "skipped": gathered.skipped}
        print_json({"file": str(options.file), "class": label, "examples": examples, **told})


def more_rows(options: argparse.Namespace, label: Any, model: Model, display: Display) -> Gathered:
    """Features of all inputs that can be read; the others are named."""
    from frugalvae.cli.inputs import gather
    from frugalvae.images.listing import counted, named, refuse

    if all(map(holds_features, options.inputs)):
        refuse_encoder(options, options.inputs[0])
    look = one_class(label, model.classes.tolist(), options.flat, display.say)
    given = gather(options, model.encoder, label, display.watching(), look)
    if options.strict:
        refuse(given.skipped | given.unreadable)
    display.say(*counted(given.skipped))
    if given.unreadable:
        say = complain if options.quiet else display.say  # what is lost is told in any case
        number = f"{len(given.unreadable):,}"
        say("\n".join([f"left out as unreadable, {number}:", *named(given.unreadable)]))
    if not len(given.x):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    return given


def one_class(label: Any, classes: Sequence[Any], flat: bool, say: Callable[[str], object]) -> Look:
    """Refuses a folder in which there are folders of other classes than the one that is meant."""
    others = {*map(str, classes)} - {str(label)}

    def look(path: Path, found: Found) -> None:
        inner = {part for inside in found.files for part in inside.parts[:-1]}
        named = {*inner, path.resolve().name}
        own = {part for part in inner if as_label(part) == str(label)}
        beside = inner - own if own else set()
        wrong = sorted({part for part in named if as_label(part) in others} | beside)
        if wrong and not flat:
            raise InputError(
                f"{path} is or has folders of other classes: {shortened(wrong)}; give the folder "
                f"of {str(label)!r} alone, or --flat if all of it is {str(label)!r}"
            )
        if inner:
            folders = plural(len({inside.parent for inside in found.files}), "folder")
            say(f"{path}: {plural(len(found.files), 'image')} of {folders} are taken")

    return look
