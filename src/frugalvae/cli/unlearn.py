"""``frugalvae unlearn``: take single images of a class out again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add
from frugalvae.cli.update import add_samples
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, quoted, shortened
from frugalvae.model.history import digest_of, is_last_change, with_digest, with_source

if TYPE_CHECKING:
    from frugalvae.cli.update import Gathered
    from frugalvae.model.model import Model

COUNTED = "familiarity and how sure answers are still count how they looked when they were taught"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Take images of a class out again that it was taught: count, mean and scatter become what "
        "they would be without them. Takes images, folders or zip archives of them, or feature "
        "files (.npz), as 'update' does. To take out all images of a class, use 'forget --with'."
    )
    add(parser, "file", "label")
    add_samples(parser)


def refuse_strange(model: Model, label: Any, gathered: Gathered) -> None:
    """Refuse images that the class was never taught, where all that it was taught is known."""
    from frugalvae.digests import among
    from frugalvae.model.plan import recognisable, taught_digests

    if not gathered.images or not recognisable(model, label):
        return
    given = gathered.digests[-len(gathered.images) :]
    known = among(given, taught_digests(model, label))
    strange = [name for name, there in zip(gathered.images, known, strict=True) if not there]
    if strange:
        raise InputError(
            f"{label!r} was never taught {shortened(strange)}; give images that it was taught, as "
            "they were then"
        )


def run(options: argparse.Namespace) -> None:
    """Take the samples out."""
    from frugalvae.cli.common import change_class
    from frugalvae.cli.update import more_rows
    from frugalvae.model.forgetting import unlearn

    display = Display(options.quiet or options.json)
    with change_class(options) as (store, model, label):
        gathered = more_rows(options, label, model, display)
        x = gathered.x
        digest = digest_of(("unlearn", label), x)
        if is_last_change(model, digest):
            display.say(f"{options.file} is as it was: the last change was this very one")
            report(options, label, 0, model)
            return
        refuse_strange(model, label, gathered)
        model = unlearn(model, label, x, digests=gathered.digests)
        store.save(with_digest(with_source(model, options.inputs[0].resolve().name), digest))
    left, remains = left_of(model, label)
    taken = plural(len(x), "sample")
    display.say(
        f"{options.file}: {taken} of {label!r} taken out, {left:,} left; mean, count and scatter "
        "are as without them",
        *(f"what remains: {sentence}" for sentence in remains),
        "their digests are kept, so that 'frugalvae learn' leaves them out where they are still in "
        f"a folder of {label!r}; --again {quoted(str(label))} teaches them",
    )
    report(options, label, len(x), model)


def left_of(model: Model, label: Any) -> tuple[int, list[str]]:
    """After a change: how many samples the class has, and what remains of those taken out."""
    left = int(model.n_samples_of_class[model.classes.tolist().index(label)])
    return left, [*model.history[-1]["remains"], COUNTED]


def report(options: argparse.Namespace, label: Any, taken_out: int, model: Model) -> None:
    """Print JSON, if that was asked for."""
    if options.json:
        left, remains = left_of(model, label)
        told = {"class": label, "taken_out": taken_out, "left": left, "remains": remains}
        print_json({"file": str(options.file), **told})
