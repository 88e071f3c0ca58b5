"""``frugalvae evaluate``: test a classifier on labelled images, and write a page about it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae import __version__
from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    choice,
    holds_features,
    refuse_encoder,
)
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import percent, plural, printable
from frugalvae.labels import folded, listing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.images.decode import File
    from frugalvae.model import Model
    from frugalvae.report.evaluation import Evaluation

SHOWN = 5  # mistakes in the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Classify images whose classes are known, and write a page: accuracy by class and task, "
        "which classes are confused, the wrong images, and how far probabilities can be trusted. "
        "Each folder of images is a class; of train/ and test/, test/ is taken."
    )
    add(parser, "file")
    parser.add_argument(
        "images",
        type=Path,
        metavar="IMAGES",
        help="a folder of test images, a zip archive of it, or a feature file (.npz)",
    )
    add_page(parser, "evaluation")
    add(parser, "--depth", "--strict")
    add_encoder(parser, remembered=True)
    add(parser, "--json", "--trust", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Classify test images, print the scores, and write a page about them."""
    from frugalvae.storage.store import Store

    refuse_wrong(options)
    store = Store(options.file, trust=options.trust)
    store.check_there()  # before anything heavy is imported
    from frugalvae.images.listing import counted

    display, model = Display(options.quiet or options.json), store.load()
    with display.watching(), open_samples(model, options) as samples:
        evaluation = evaluate(model, samples, options)
        page = page_of("evaluate", lambda: page_about(evaluation, samples))
    if options.json:
        told = {"skipped": samples.left_out, "assumed": samples.notes}
        print_json({**evaluation.to_json(), **told})
    display.say(*samples.notes, *counted(samples.left_out))
    show(evaluation, display)
    write_page(page, options.output, display)


def refuse_wrong(options: argparse.Namespace) -> None:
    """Refuse a page that would replace what is evaluated, and an encoder for features."""
    for given in (options.file, options.images):
        if options.output.resolve() == given.resolve():
            raise InputError(f"{options.output} is what is to be evaluated; give another --output")
    check_output(options.output, ".html", ".htm")
    if holds_features(options.images):
        refuse_encoder(options, options.images)


def evaluate(model: Model, samples: SamplesToTest, options: argparse.Namespace) -> Evaluation:
    """The predictions for all samples."""
    from frugalvae.report.evaluation import Evaluation

    file, images, output = options.file, options.images, options.output
    about = {
        "classifier": file.name,
        "tested on": str(images),
        "encoder": samples.encoder,
        "made": f"{datetime.now():%Y-%m-%d %H:%M}, frugalvae {__version__}",
        "command": shlex.join(["frugalvae", "evaluate", *map(str, (file, images, "-o", output))]),
    }
    return Evaluation(
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
        about,
        samples.taught,
        expected(model),
    )


def expected(model: Model) -> tuple[float, float, float] | None:
    """The accuracy that ``learn`` has told, and its interval, if it has."""
    found = model.forecast
    if found is None or not found.enough:
        return None
    return found.accuracy, *found.interval


def page_about(evaluation: Evaluation, samples: SamplesToTest) -> str:
    """The page, with thumbnails."""
    from frugalvae.report.evaluation_page import evaluation_page, pictured
    from frugalvae.report.thumbnails import thumbnails

    return evaluation_page(evaluation, thumbnails(pictured(evaluation), samples.read))


def show(evaluation: Evaluation, display: Display) -> None:
    """What the terminal shows."""
    names = evaluation.classes  # as other commands take them
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
    if evaluation.caution:
        display.say(f"warning: {evaluation.caution}")


# --------------------------------------------------------------------------- what it is tested on


@dataclass(frozen=True)
class SamplesToTest:
    """Test samples of classes that a classifier knows.

    Attributes
    ----------
    features
        Shape (n, d).
    truth
        The class of each, as its number.
    names
        The file of each, or its row.
    encoder
        What made the features, in words.
    read
        The content of a sample's file; ``None`` if features were given.
    left_out, notes
        Files that were not read, with the reason; and what was assumed of folders.
    taught
        How many of the samples the classifier was taught.
    """

    features: NDArray[np.float32]
    truth: NDArray[np.int64]
    names: list[str]
    unknown: dict[str, int]
    skipped: dict[str, str]
    encoder: str
    read: Callable[[int], bytes] | None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    taught: int = 0


@contextmanager
def open_samples(model: Model, options: argparse.Namespace) -> Iterator[SamplesToTest]:
    """Features of what is to be classified; files can be read inside the block."""
    import numpy as np

    from frugalvae.encoders.remembered import described, load_encoder
    from frugalvae.images.listing import open_images, refuse
    from frugalvae.images.photographs import encode_files, refuse_with_unreadable
    from frugalvae.intake import other_names

    path = options.images
    if holds_features(path):
        yield from_features(model, options.file, path)
        return
    classes = [str(label) for label in model.classes.tolist()]
    names = [*classes, *model.aliases]
    with open_images(path, "testing", depth=options.depth, known=names) as found:
        numbers, unknown = known(model, found.labels, path)
        if options.strict:
            refuse_with_unreadable(found.at(np.flatnonzero(numbers >= 0)))
        encoder, _ = load_encoder(model.encoder, choice(options), options.file)
        check_width(model, encoder.dim, f"{described(encoder.identity)} gives features")
        renamed = {name: model.aliases.get(name) for name in found.classes}
        numbers, images = numbers[numbers >= 0], found.at(np.flatnonzero(numbers >= 0))
        encoded = encode_files(images.files, encoder, options.batch_size, os.cpu_count() or 1)
        names = [printable(str(path)) for path in images.paths]  # a page is UTF-8
        unreadable = {names[place]: why for place, why in encoded.reasons.items()}
        if options.strict:
            refuse(unreadable)
        if not len(encoded.places):
            why = encoded.reasons[0]
            raise InputError(f"{path}: no image in it can be read, such as {names[0]} ({why})")
        yield SamplesToTest(
            encoded.features,
            numbers[encoded.places],
            [names[place] for place in encoded.places],
            unknown,
            unreadable,
            described(encoder.identity),
            lambda row: images.files[encoded.places[row]].read(),
            found.skipped,
            found.notes
            + other_names({n: y for n, y in renamed.items() if y is not None})
            + alike(unknown, classes),
            taught_before(model, [images.files[place] for place in encoded.places]),
        )


def taught_before(model: Model, files: list[File]) -> int:
    """How many photographs that are tested were taught: they are recognised too easily."""
    import numpy as np

    from frugalvae.images.photographs import digests_of
    from frugalvae.taught import among

    if not model.digests:
        return 0
    digests = digests_of(files, "looking for images that were taught")
    return int(among(digests, np.concatenate(list(model.digests.values()))).sum())


def alike(unknown: Iterable[str], classes: Iterable[str]) -> list[str]:
    """Unknown classes whose names differ from a known one only in case or blanks, a line each."""
    known = {folded(name): name for name in classes}
    return [
        f"class {name!r} is not known; rename its folder if {known[folded(name)]!r} is meant"
        for name in unknown
        if folded(name) in known
    ]


def from_features(model: Model, file: Path, path: Path) -> SamplesToTest:
    """The test part of a feature file."""
    import numpy as np

    from frugalvae.encoders.remembered import check_same, described
    from frugalvae.images.feature_file import load_testing

    features = load_testing(path)
    numbers, unknown = known(model, features.y_test, path)
    taught = model.encoder
    check_same(taught, features.encoder, file, path)
    check_width(model, features.x_test.shape[1], f"{path} has features")
    rows = np.flatnonzero(numbers >= 0)
    return SamplesToTest(
        features.x_test[rows],
        numbers[rows],
        [str(row) for row in rows.tolist()],
        unknown,
        {},
        described(features.encoder or taught or {}),
        None,
    )


def known(
    model: Model, labels: NDArray[Any], path: Path
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The class of each label as its number, -1 if it is unknown; and how many of which are.

    Labels are compared as text: a folder's name is text, and a label may be a number. A name that
    a class had still means it.
    """
    import numpy as np

    place = {label: n for n, label in enumerate(model.classes.tolist())}
    numbers = {name: place[label] for name, label in model.aliases.items() if label is not None}
    numbers |= {str(label): n for label, n in place.items()}
    written = labels.astype(str)
    names, inverse, counts = np.unique(written, return_inverse=True, return_counts=True)
    found = np.array([numbers.get(name, -1) for name in names.tolist()], np.int64)
    if (found < 0).all():
        raise InputError(unknown_classes(names.tolist(), model, path))
    unknown = {str(n): int(c) for n, c, f in zip(names, counts, found, strict=True) if f < 0}
    return found[inverse], unknown


def unknown_classes(names: list[str], model: Model, path: Path) -> str:
    """That no class is known, and what may be the reason."""
    classes = {str(label) for label in model.classes.tolist()}
    inside = sorted({name.split("/")[0] for name in names if name.split("/", 1)[-1] in classes})
    if inside:
        apart = [name for name in inside if not name.lower().startswith("train")]
        hint = f" Its classes are in folders: give {path / (apart or inside)[0]}."
    else:
        hint = suggestion(names[0], classes)
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return (
        f"{path}: the classifier knows none of its {len(names)} classes, such as {shown}.{hint} "
        f"{listing(model.classes)}"
    )


def check_width(model: Model, width: int, what: str) -> None:
    """Refuse features of another width than those that were taught."""
    if width != model.n_features:
        raise InputError(
            f"{what} of {width} numbers, and the classifier learned from features of "
            f"{model.n_features}; use the encoder that it learned from"
        )
