"""``frugalvae update``: give more examples of a known class."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add_file,
    add_label,
    add_quiet,
    add_same_encoder,
    add_wait,
    refuse_encoder,
)
from frugalvae.cli.output import complain
from frugalvae.formatting import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.console import Display


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn more examples of a known class, from images, folders of them, or feature files "
        "(.npz: the array x, or the rows of x_train that belong to the class)."
    )
    add_file(parser)
    add_label(parser)
    parser.add_argument(
        "inputs", type=Path, nargs="+", metavar="IMAGES", help="an image, a folder or FEATURES.npz"
    )
    add_same_encoder(parser)
    add_wait(parser)
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

    display = Display(options.quiet)
    with change_class(options) as (store, model, label):
        x = more_rows(options, label, model.encoder, display)
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


def more_rows(
    options: argparse.Namespace, label: Any, remembered: Any, display: Display
) -> NDArray[np.float32]:
    """Features (n, d) of all inputs that can be read; the others are named."""
    from frugalvae.cli.inputs import gather
    from frugalvae.cli.rows import rows_of_class
    from frugalvae.errors import InputError
    from frugalvae.images.unreadable import named

    if all(path.suffix == ".npz" for path in options.inputs):
        refuse_encoder(options, options.inputs[0])
    _, x, skipped = gather(
        options, remembered, lambda path: rows_of_class(path, label), display.watching()
    )
    if skipped:
        say = complain if options.quiet else display.say  # what is lost is told in any case
        say("\n".join([f"left out as unreadable, {len(skipped):,}:", *named(skipped)]))
    if not len(x):
        raise InputError(f"none of the images can be read; {options.file} is as it was")
    return x
