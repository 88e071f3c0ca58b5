"""``frugalvae evaluate``: a saved classifier on test images, and a page about it."""

from __future__ import annotations

import shlex
from datetime import datetime
from json import dumps
from pathlib import Path

from frugalvae import __version__
from frugalvae.cli.evaluation_data import Samples, open_samples
from frugalvae.console import Display
from frugalvae.encoders.remembered import Choice
from frugalvae.errors import InputError, MissingPackageError
from frugalvae.extras import needing
from frugalvae.files import check_place, write_text
from frugalvae.formatting import percent
from frugalvae.images.shards import BATCH_SIZE
from frugalvae.report.evaluation import Evaluation
from frugalvae.report.evaluation_json import to_json
from frugalvae.report.evaluation_summary import shown_names
from frugalvae.report.thumbnails import thumbnails
from frugalvae.storage.store import Store

SHOWN = 5  # mistakes in the terminal


def evaluate(
    file: Path,
    images: Path,
    output: Path,
    *,
    choice: Choice | None = None,
    batch_size: int = BATCH_SIZE,
    quiet: bool = False,
    json: bool = False,
) -> Evaluation:
    """Classify test images, write a page about it, and print the scores.

    Parameters
    ----------
    file
        A saved classifier.
    images
        A folder or a zip archive with one folder a class, all of it for the test; or a feature
        file, of which the test part is taken.
    output
        Where the page goes.
    choice
        The encoder, where the classifier's own has moved.
    batch_size
        How many images the encoder takes at a time.
    quiet
        Print nothing.
    json
        Print all numbers as JSON in place of a table.
    """
    check_place(output)
    for given in (file, images):
        if output.resolve() == given.resolve():
            raise InputError(f"{output} is what is to be evaluated; give another --output")
    display = Display(quiet or json)
    store = Store(file)
    store.check_there()
    model, asked = store.load(), choice or Choice()
    opened = open_samples(model, file, images, asked, batch_size)
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
        print(dumps(to_json(evaluation), indent=1, ensure_ascii=False, allow_nan=False))
    show(evaluation, display)
    if isinstance(page, MissingPackageError):
        raise page  # the figures are there all the same
    write_text(output, page)
    display.say(f"written: {output}")
    return evaluation


def page_about(evaluation: Evaluation, samples: Samples) -> str | MissingPackageError:
    """The page; or what has to be installed for it."""
    try:
        with needing("the page of 'evaluate'"):
            from frugalvae.report.evaluation_page import evaluation_page, pictured

            pictures = thumbnails(pictured(evaluation), samples.read) if samples.read else {}
            return evaluation_page(evaluation, pictures)
    except MissingPackageError as error:
        return error


def about(file: Path, images: Path, output: Path, samples: Samples) -> dict[str, str]:
    """What the page says beside the numbers."""
    return {
        "classifier": file.name,
        "tested on": str(images),
        "encoder": samples.encoder,
        "made": f"{datetime.now():%Y-%m-%d %H:%M}, frugalvae {__version__}",
        "command": shlex.join(["frugalvae", "evaluate", *map(str, (file, images, "-o", output))]),
    }


def show(evaluation: Evaluation, display: Display) -> None:
    """What the terminal shows."""
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
    number = f"{len(evaluation.truth):,} {what} of {len(evaluation.tested)} classes"
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
        display.say(f"left out: {len(evaluation.skipped):,} images that cannot be read")
