"""``frugalvae evaluate``: test a classifier on labelled images, and write a page about it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae import __version__
from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    choice,
    refuse_encoder,
)
from frugalvae.cli.pages import add_page, page_of, write_page
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import percent, plural, printable
from frugalvae.images import holds_features
from frugalvae.labels import folded, listing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.model.model import Model
    from frugalvae.report.evaluation import Evaluation
    from frugalvae.samples import Samples

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
    from frugalvae.samples import counted, open_samples

    display, model = Display(options.quiet or options.json), store.load()
    names = [*map(str, model.classes.tolist()), *model.aliases]
    opened = open_samples(options.images, "testing", depth=options.depth, known=names)
    with display.watching(), opened as samples:
        found = tested(model, samples, options)
        evaluation = evaluate(model, found, options)
        page = page_of("evaluate", lambda: page_about(evaluation, found.samples))
    if options.json:
        print_json({**evaluation.to_json(), "skipped": samples.skipped, "assumed": found.notes})
    display.say(*found.notes, *counted(samples.skipped))
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


def evaluate(model: Model, found: Tested, options: argparse.Namespace) -> Evaluation:
    """The predictions for all samples."""
    from frugalvae.report.evaluation import Evaluation

    file, images, output = options.file, options.images, options.output
    about = {
        "classifier": file.name,
        "tested on": str(images),
        "encoder": found.encoder,
        "made": f"{datetime.now():%Y-%m-%d %H:%M}, frugalvae {__version__}",
        "command": shlex.join(["frugalvae", "evaluate", *map(str, (file, images, "-o", output))]),
    }
    return Evaluation(
        [str(label) for label in model.classes.tolist()],
        model.task_of_class,
        found.truth,
        model.predict_proba(found.features),
        list(map(printable, found.samples.names)),  # a page is UTF-8
        model.memory_report(),
        found.samples.files is not None,
        file.stat().st_size,
        found.unreadable,
        found.unknown,
        about,
        found.taught,
        expected(model),
    )


def expected(model: Model) -> tuple[float, float, float] | None:
    """The accuracy that ``learn`` has told, and its interval, if it has."""
    found = model.forecast
    if found is None or not found.enough:
        return None
    return found.accuracy, *found.interval


def page_about(evaluation: Evaluation, samples: Samples) -> str:
    """The page, with thumbnails."""
    from frugalvae.report.evaluation_page import evaluation_page, pictured
    from frugalvae.report.thumbnails import thumbnails

    return evaluation_page(evaluation, thumbnails(pictured(evaluation), samples.reader))


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
class Tested:
    """Test samples of classes that a classifier knows, and what was left out.

    Attributes
    ----------
    samples
        Those that could be read.
    features, truth
        Their features (n, d), and the number of the class of each.
    encoder
        What made the features, in words.
    unknown
        How many samples there are of classes that the classifier does not know.
    unreadable, notes
        Samples that cannot be read, with the reason; and what was assumed.
    taught
        How many of the samples the classifier was taught: they are recognised too easily.
    """

    samples: Samples
    features: NDArray[np.float32]
    truth: NDArray[np.int64]
    encoder: str
    unknown: dict[str, int]
    unreadable: dict[str, str]
    notes: list[str]
    taught: int


def tested(model: Model, samples: Samples, options: argparse.Namespace) -> Tested:
    """Features of what is to be classified."""
    import numpy as np

    from frugalvae.digests import among
    from frugalvae.encoders.remembered import described
    from frugalvae.model.plan import other_names
    from frugalvae.samples import refuse

    classes = [str(label) for label in model.classes.tolist()]
    numbers, unknown = known(model, samples.labels, options.images)
    named = {str(name): model.aliases.get(str(name)) for name in samples.classes}
    renamed = {name: label for name, label in named.items() if label is not None}
    notes = samples.notes + other_names(renamed) + alike(unknown, classes)
    numbers, samples = numbers[numbers >= 0], samples.at(np.flatnonzero(numbers >= 0))
    if options.strict:
        samples.refuse_unreadable()
    encoder, remembered = samples.encoder(model.encoder, choice(options), options.file)
    encoded = samples.encode(encoder, options.batch_size)
    unreadable = {printable(samples.names[at]): why for at, why in encoded.reasons.items()}
    if options.strict:
        refuse(unreadable)
    if not len(encoded.places):
        why = encoded.reasons[0]
        raise InputError(
            f"{options.images}: no image in it can be read, such as {samples.names[0]} ({why})"
        )
    if encoded.features.shape[1] != model.n_features:
        raise InputError(
            f"{described(remembered or {})} gives features of {encoded.features.shape[1]} numbers, "
            f"and the classifier learned from features of {model.n_features}; use the encoder that "
            "it learned from"
        )
    samples, taught = samples.at(encoded.places), 0
    if model.digests and samples.files is not None:
        digests = samples.digests("looking for images that were taught")
        taught = int(among(digests, np.concatenate(list(model.digests.values()))).sum())
    return Tested(
        samples,
        encoded.features,
        numbers[encoded.places],
        described(remembered or {}),
        unknown,
        unreadable,
        notes,
        taught,
    )


def alike(unknown: Iterable[str], classes: Iterable[str]) -> list[str]:
    """Unknown classes whose names differ from a known one only in case or blanks, a line each."""
    known = {folded(name): name for name in classes}
    return [
        f"class {name!r} is not known; rename its folder if {known[folded(name)]!r} is meant"
        for name in unknown
        if folded(name) in known
    ]


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
