"""``frugalvae merge-classes``: make one class of several."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add
from frugalvae.console import Display, print_json
from frugalvae.formatting import plural
from frugalvae.labels import label_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Make one class of several: the samples of the others belong to the first one from now "
        "on, as if they had been taught so. Needs memory 'moments' with head 'bayes', the default."
    )
    add(parser, "file", "label")
    parser.add_argument("others", nargs="+", metavar="OTHER_CLASS", help="what becomes part of it")
    add(parser, "--trust", "--wait", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Join the classes."""
    from frugalvae.cli.common import change_class
    from frugalvae.model.merging import merge_classes

    with change_class(options) as (store, model, label):
        joined = [
            label_named(options.file, model.classes.tolist(), text) for text in options.others
        ]
        for other in joined:
            model = merge_classes(model, label, other)
        store.save(model)
    samples = int(model.n_samples_of_class[model.classes.tolist().index(label)])
    display = Display(options.quiet or options.json)
    names = " and ".join(map(repr, joined))
    display.say(
        f"{options.file}: {names} became part of {label!r}, which has {plural(samples, 'sample')} "
        f"now; {plural(len(model.classes), 'class')} in all"
    )
    if options.json:
        told = {"class": label, "joined": joined, "samples": samples}
        print_json({"file": str(options.file), **told, "classes": len(model.classes)})
