"""``frugalvae evaluate``: test a classifier on labelled images, and write a page about it."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae import __version__
from frugalvae.cli.options import add, add_encoder, check_output, encoder_of, refuse_encoder
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import percent, plural
from frugalvae.images import holds_features

if TYPE_CHECKING:
    from frugalvae.verbs.evaluate import Evaluation

SHOWN = 5  # mistakes in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file")
    about = "a folder of test images, a zip archive of it, or a feature file (.npz)"
    parser.add_argument("images", type=Path, metavar="IMAGES", help=about)
    add_page(parser, "evaluation")
    add(parser, "--depth", "--strict")
    add_encoder(parser, remembered=True)
    add(parser, "--json", "--trust", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Classify images whose classes are known, and write a page about it.

    The page shows accuracy by class and task, which classes are confused, the wrong images, and
    how far probabilities can be trusted. Each folder of images is a class; of train/ and test/,
    test/ is taken.
    """
    from frugalvae.storage.store import Store

    refuse_wrong(options)
    store = Store(options.file, trust=options.trust)
    store.check_there()  # before anything heavy is imported
    from frugalvae.samples import counted, open_samples
    from frugalvae.verbs.evaluate import evaluate

    display, model = Display(options.quiet or options.json), store.load()
    names = [*map(str, model.classes.tolist()), *model.aliases]
    opened = open_samples(options.images, "testing", depth=options.depth, known=names)
    with display.watching(), opened as samples:
        encoder = encoder_of(samples, model.encoder, options)
        how = {"batch_size": options.batch_size, "strict": options.strict}
        found = evaluate(model, samples, encoder, place=options.images, **how)
        found = replace(found, file_size=store.path.stat().st_size, about=about(found, options))
        page = page_of("evaluate", lambda: page_about(found))
    if options.json:
        print_json(found.to_json())
    display.say(*found.notes, *counted(samples.skipped))
    show(found, display)
    write_page(page, options.output, display)


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse a page that would replace what is evaluated, and an encoder for features."""
    for given in (options.file, options.images):
        if options.output.resolve() == given.resolve():
            raise InputError(f"{options.output} is what is to be evaluated; give another --output")
    check_output(options.output, ".html", ".htm")
    if holds_features(options.images):
        refuse_encoder(options, options.images)


def about(found: Evaluation, options: argparse.Namespace) -> dict[str, str]:
    """What was evaluated, in words."""
    words = map(str, (options.file, options.images, "-o", options.output))
    return {
        "classifier": options.file.name,
        "tested on": str(options.images),
        "encoder": found.encoder,
        "made": f"{datetime.now():%Y-%m-%d %H:%M}, frugalvae {__version__}",
        "command": shlex.join(["frugalvae", "evaluate", *words]),
    }


def page_about(found: Evaluation) -> str:
    """The page, with thumbnails."""
    from frugalvae.pages.evaluation import evaluation_page, pictured
    from frugalvae.pages.render import thumbnails

    assert found.kept is not None
    return evaluation_page(found, thumbnails(pictured(found), found.kept.reader))


def show(found: Evaluation, display: Display) -> None:
    """What the terminal shows."""
    names = found.classes  # as other commands take them
    low, high = found.interval
    tasks = found.task_accuracy.tolist()
    rows = [
        ["accuracy", f"{percent(found.accuracy)} ({percent(low)} to {percent(high)})"],
        ["mean over classes", percent(found.mean_class_accuracy)],
        ["expected calibration error", percent(found.calibration_error)],
        *(
            [f"task {task}", percent(share) or "no samples"]
            for task, share in enumerate(tasks, start=1)
            if len(tasks) > 1
        ),
    ]
    what = "images" if found.of_images else "samples"
    number = f"{len(found.truth):,} {what} of {plural(len(found.tested), 'class')}"
    display.table(number, ["", ""], rows)
    if found.pairs:
        display.say("most confused:")
    for pair in found.pairs[:SHOWN]:
        truth, answer = names[pair.truth], names[pair.taken_for]
        display.say(f"  {truth} mistaken for {answer}: {pair.count:,} of {pair.total:,}")
    for name, count in list(found.unknown.items())[:SHOWN]:
        display.say(f"left out: class {name!r}, which the classifier does not know ({count:,})")
    if len(found.unknown) > SHOWN:
        display.say(f"left out: {len(found.unknown) - SHOWN:,} more classes")
    if found.skipped:
        display.say(f"left out as unreadable: {plural(len(found.skipped), 'image')}")
    if found.caution:
        display.say(f"warning: {found.caution}")
