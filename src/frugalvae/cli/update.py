"""``frugalvae update``: give more examples of a known class."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.cli.options import add, add_encoder, choice, refuse_encoder
from frugalvae.console import Display, print_error, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, shortened
from frugalvae.images import holds_features
from frugalvae.labels import as_label
from frugalvae.model.history import digest_of, is_last_change, with_digest, with_source
from frugalvae.samples import is_folder

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.samples import Samples


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
    from frugalvae.cli.changes import change_class
    from frugalvae.digests import among
    from frugalvae.model.plan import taught_digests

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
