"""``frugalvae evaluate``: a saved classifier on test images, and a page about it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae import __version__
from frugalvae.checks import listing
from frugalvae.console import Display
from frugalvae.data.features import load_features
from frugalvae.encoders import make_frozen
from frugalvae.encoders.base import Encoder
from frugalvae.encoders.identity import differences, in_words, make_identified
from frugalvae.encoding.shard import encode_files
from frugalvae.encoding.source import open_test_images
from frugalvae.errors import InputError, suggestion
from frugalvae.files import check_place, write_text
from frugalvae.learner import FrugalClassifier
from frugalvae.report.evaluation import Evaluation
from frugalvae.report.evaluation_page import evaluation_page, pictured, shown_names
from frugalvae.report.page import percent
from frugalvae.report.thumbnails import thumbnails

FEATURES = ".npz"
DEFAULT = "efficientnet"  # for a classifier that does not say what made its features
SHOWN = 5  # mistakes in the terminal


@dataclass(frozen=True)
class Samples:
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
    """

    features: NDArray[np.float32]
    truth: NDArray[np.int64]
    names: list[str]
    unknown: dict[str, int]
    skipped: dict[str, str]
    encoder: str
    read: Callable[[int], bytes] | None


def evaluate(
    file: Path,
    images: Path,
    output: Path,
    *,
    model: str | None = None,
    batch_size: int = 64,
    jobs: int = 1,
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
    model
        Where the classifier's CLIP is, if that is not a name on the Hugging Face hub.
    batch_size, jobs
        How many images the encoder takes at a time, and how many threads decode them.
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
    classifier = FrugalClassifier.load(file)
    with display.watching(), open_samples(classifier, images, model, batch_size, jobs) as samples:
        evaluation = Evaluation(
            [str(label) for label in classifier.classes_.tolist()],
            classifier.task_of_class_,
            samples.truth,
            classifier.predict_proba(samples.features),
            samples.names,
            classifier.memory_report(),
            samples.read is not None,
            file.stat().st_size,
            samples.skipped,
            samples.unknown,
            about(file, images, output, samples),
        )
        pictures = thumbnails(pictured(evaluation), samples.read) if samples.read else {}
    write_text(output, evaluation_page(evaluation, pictures))
    if json and not quiet:
        print(dumps(evaluation.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    show(evaluation, display)
    display.say(f"written: {output}")
    return evaluation


@contextmanager
def open_samples(
    classifier: FrugalClassifier, path: Path, model: str | None, batch_size: int, jobs: int
) -> Iterator[Samples]:
    """Features of what is to be classified; files can be read inside the block."""
    if path.suffix == FEATURES and not path.is_dir():
        yield from_features(classifier, path)
        return
    with open_test_images(path) as found:
        numbers, unknown = known(classifier, found.labels, path)
        encoder = encoder_of(classifier, model)
        places = np.flatnonzero(numbers >= 0)
        files = [found.files[place] for place in places]
        encoded = encode_files(files, encoder, batch_size, jobs)
        names = [str(found.paths[place]) for place in places]
        if not len(encoded.places):
            why = encoded.reasons[0]
            raise InputError(f"{path}: no image in it can be read, such as {names[0]} ({why})")
        yield Samples(
            encoded.features,
            numbers[places][encoded.places],
            [names[place] for place in encoded.places],
            unknown,
            {names[place]: why for place, why in encoded.reasons.items()},
            in_words(encoder.identity),
            lambda row: files[encoded.places[row]].read(),
        )


def from_features(classifier: FrugalClassifier, path: Path) -> Samples:
    """The test part of a feature file."""
    features = load_features(path)
    numbers, unknown = known(classifier, features.y_test, path)
    taught = getattr(classifier, "encoder_", None)
    if taught and features.encoder and (different := differences(taught, features.encoder)):
        raise InputError(
            f"{path}: made by {in_words(features.encoder)}, and the classifier learned from "
            f"{in_words(taught)}; they differ in {', '.join(different)}. Encode the images with "
            "the classifier's encoder"
        )
    check_width(classifier, features.x_test.shape[1], f"{path} has features")
    rows = np.flatnonzero(numbers >= 0)
    return Samples(
        features.x_test[rows],
        numbers[rows],
        [str(row) for row in rows.tolist()],
        unknown,
        {},
        in_words(features.encoder or taught),
        None,
    )


def known(
    classifier: FrugalClassifier, labels: NDArray[Any], path: Path
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The class of each label as its number, -1 if it is unknown; and how many of which are.

    Labels are compared as text: a folder's name is text, and a label may be a number.
    """
    numbers = {str(label): n for n, label in enumerate(classifier.classes_.tolist())}
    names, inverse, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    found = np.array([numbers.get(name, -1) for name in names.tolist()], np.int64)
    if (found < 0).all():
        raise InputError(unknown_classes(names.tolist(), classifier, path))
    unknown = {str(n): int(c) for n, c, f in zip(names, counts, found, strict=True) if f < 0}
    return found[inverse], unknown


def unknown_classes(names: list[str], classifier: FrugalClassifier, path: Path) -> str:
    """That no class is known, and what may be the reason."""
    classes = {str(label) for label in classifier.classes_.tolist()}
    inside = sorted({name.split("/")[0] for name in names if name.split("/", 1)[-1] in classes})
    if inside:
        hint = f" Its classes are in folders: give {path / inside[-1]}."  # test, not train
    else:
        hint = suggestion(names[0], classes)
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return (
        f"{path}: the classifier knows none of its {len(names)} classes, such as {shown}.{hint} "
        f"{listing(classifier.classes_)}"
    )


def encoder_of(classifier: FrugalClassifier, model: str | None) -> Encoder:
    """What made the features that a classifier learned from."""
    identity: Mapping[str, Any] | None = getattr(classifier, "encoder_", None)
    encoder = make_frozen(DEFAULT) if identity is None else make_identified(identity, model)
    untold = "" if identity else "the file does not say what made its features; "
    check_width(classifier, encoder.dim, f"{untold}{in_words(encoder.identity)} gives features")
    return encoder


def check_width(classifier: FrugalClassifier, width: int, what: str) -> None:
    """Refuse features of another width than those that were taught."""
    if width != classifier.n_features_in_:
        raise InputError(
            f"{what} of {width} numbers, and the classifier learned from features of "
            f"{classifier.n_features_in_}; use the encoder that it learned from"
        )


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
        display.say(f"  {truth} taken for {answer}: {pair.count:,} of {pair.total:,}")
    for name, count in list(evaluation.unknown.items())[:SHOWN]:
        display.say(f"left out: class {name!r}, which the classifier does not know ({count:,})")
    if len(evaluation.unknown) > SHOWN:
        display.say(f"left out: {len(evaluation.unknown) - SHOWN:,} more classes")
    if evaluation.skipped:
        display.say(f"left out: {len(evaluation.skipped):,} images that cannot be read")
