"""``frugalvae evaluate``: test a classifier on labelled images, and write a page about it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae import __version__
from frugalvae.cli.options import (
    add_file,
    add_folders,
    add_json,
    add_output,
    add_quiet,
    add_same_encoder,
    add_trust,
    choice,
    refuse_encoder,
)
from frugalvae.cli.output import print_json
from frugalvae.errors import InputError, MissingPackageError, needing
from frugalvae.files import check_place, write_text
from frugalvae.formatting import percent, plural
from frugalvae.images import BATCH_SIZE

if TYPE_CHECKING:
    from frugalvae.cli.evaluation_data import Samples
    from frugalvae.console import Display
    from frugalvae.encoders.remembered import Choice
    from frugalvae.report.evaluation import Evaluation

SHOWN = 5  # mistakes in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Classify images whose classes are known, and write a page: accuracy by class and task, "
        "which classes are confused, the wrong images, and how far probabilities can be trusted. "
        "Each folder of images is a class; of train/ and test/, test/ is taken."
    )
    add_file(parser)
    parser.add_argument(
        "images",
        type=Path,
        metavar="IMAGES",
        help="a folder of test images, a zip archive of it, or a feature file (.npz)",
    )
    add_output(parser, "the page to write", "evaluation.html")
    add_folders(parser)
    add_same_encoder(parser)
    add_json(parser)
    add_trust(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Evaluate as the options say."""
    if options.images.suffix == ".npz":
        refuse_encoder(options, options.images)
    evaluate(
        options.file,
        options.images,
        options.output,
        choice=choice(options),
        batch_size=options.batch_size,
        depth=options.depth,
        strict=options.strict,
        trust=options.trust,
        quiet=options.quiet,
        json=options.json,
    )


def evaluate(
    file: Path,
    images: Path,
    output: Path,
    *,
    choice: Choice | None = None,
    batch_size: int = BATCH_SIZE,
    depth: int | None = None,
    strict: bool = False,
    trust: Collection[str] = (),
    quiet: bool = False,
    json: bool = False,
) -> Evaluation:
    """Classify test images, print the scores, and write a page about them.

    Parameters
    ----------
    file
        A saved classifier.
    images
        A folder or a zip archive with one folder per class, all of it for the test; or a feature
        file, of which the test part is taken.
    output
        The page to write.
    choice
        The encoder, where the classifier's own has moved.
    batch_size
        How many images are encoded at a time.
    depth
        How many levels deep the folders of classes are, if that is not to be found out.
    strict
        Refuse if a file cannot be read or is not an image.
    trust
        Modules that parts from outside may be imported from.
    quiet
        Print nothing.
    json
        Print JSON instead of a table.
    """
    check_place(output)
    for given in (file, images):
        if output.resolve() == given.resolve():
            raise InputError(f"{output} is what is to be evaluated; give another --output")
    from frugalvae.storage.store import Store

    store = Store(file, trust=trust)
    store.check_there()  # before anything heavy is imported
    from frugalvae.cli.evaluation_data import open_samples
    from frugalvae.console import Display
    from frugalvae.encoders.remembered import Choice
    from frugalvae.images.listing import counted
    from frugalvae.report.evaluation import Evaluation
    from frugalvae.report.evaluation_json import to_json

    display, model = Display(quiet or json), store.load()
    opened = open_samples(
        model, file, images, choice or Choice(), batch_size=batch_size, depth=depth, strict=strict
    )
    with display.watching(), opened as samples:
        evaluation = Evaluation(
            [str(label) for label in model.classes.tolist()],
            model.task_of_class,
            samples.truth,
            model.predict_proba(samples.features),
            samples.names,
            model.memory_report(),
            samples.read is not None,
            file.stat().st_size,
            samples.skipped,
            samples.unknown,
            about(file, images, output, samples),
        )
        page = page_about(evaluation, samples)
    if json and not quiet:
        told = {"skipped": samples.left_out, "assumed": samples.notes}
        print_json({**to_json(evaluation), **told})
    display.say_lines([*samples.notes, *counted(samples.left_out)])
    show(evaluation, display)
    if isinstance(page, MissingPackageError):
        raise page  # the scores are printed all the same
    write_text(output, page)
    display.say(f"written: {output}")
    return evaluation


def page_about(evaluation: Evaluation, samples: Samples) -> str | MissingPackageError:
    """The page; or what has to be installed for it."""
    try:
        with needing("the page of 'evaluate'"):
            from frugalvae.report.evaluation_page import evaluation_page, pictured
            from frugalvae.report.thumbnails import thumbnails

            pictures = thumbnails(pictured(evaluation), samples.read) if samples.read else {}
            return evaluation_page(evaluation, pictures)
    except MissingPackageError as error:
        return error


def about(file: Path, images: Path, output: Path, samples: Samples) -> dict[str, str]:
    """What the page says besides the scores."""
    return {
        "classifier": file.name,
        "tested on": str(images),
        "encoder": samples.encoder,
        "made": f"{datetime.now():%Y-%m-%d %H:%M}, frugalvae {__version__}",
        "command": shlex.join(["frugalvae", "evaluate", *map(str, (file, images, "-o", output))]),
    }


def show(evaluation: Evaluation, display: Display) -> None:
    """What the terminal shows."""
    from frugalvae.report.evaluation_summary import shown_names

    names = shown_names(evaluation.classes)
    low, high = evaluation.interval
    rows = [
        ["accuracy", f"{percent(evaluation.accuracy)} ({percent(low)} to {percent(high)})"],
        ["mean over classes", percent(evaluation.mean_class_accuracy)],
        ["expected calibration error", percent(evaluation.calibration_error)],
        *(
            [f"task {task}", percent(share) or "no samples"]
            for task, share in enumerate(evaluation.task_accuracy.tolist(), start=1)
            if len(evaluation.task_accuracy) > 1
        ),
    ]
    what = "images" if evaluation.of_images else "samples"
    number = f"{len(evaluation.truth):,} {what} of {plural(len(evaluation.tested), 'class')}"
    display.table(number, ["", ""], rows)
    if evaluation.pairs:
        display.say("most confused:")
    for pair in evaluation.pairs[:SHOWN]:
        truth, answer = names[pair.truth], names[pair.taken_for]
        display.say(f"  {truth} mistaken for {answer}: {pair.count:,} of {pair.total:,}")
    for name, count in list(evaluation.unknown.items())[:SHOWN]:
        display.say(f"left out: class {name!r}, which the classifier does not know ({count:,})")
    if len(evaluation.unknown) > SHOWN:
        display.say(f"left out: {len(evaluation.unknown) - SHOWN:,} more classes")
    if evaluation.skipped:
        display.say(f"left out as unreadable: {plural(len(evaluation.skipped), 'image')}")
