"""``frugalvae predict``: name what is in images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.arguments import positive, share
from frugalvae.tool.answers import FIELDS, NONE, as_text, ranked, show, write_csv
from frugalvae.tool.asked import choice, classifier_file, complain, which_encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.tool.encoder import Remembered

UNKNOWN = 0.05


def add_predict(verbs: Any) -> None:
    """The options of ``frugalvae predict``."""
    predict = verbs.add_parser(
        "predict",
        help="name what is in images",
        description="Name what is in images, in all images of folders, or in rows of feature "
        "files (.npz: the array x, or else x_test). Inputs that cannot be read are named on "
        "standard error; the exit code is then 1.",
        epilog="Fields of --csv, a row for each input and rank: " + ", ".join(FIELDS) + ". "
        "--json has a list of predictions with input, label, known and top (label and "
        "probability each), and a list of unreadable inputs with input and reason. Its label is "
        "the first of top, or null for none of these. known is true, false, or null (in CSV "
        "empty) without --unknown.",
        parents=[classifier_file(), which_encoder()],
    )
    predict.add_argument(
        "inputs", type=Path, nargs="+", metavar="IMAGE", help="or a folder, or FEATURES.npz"
    )
    predict.add_argument(
        "--top", type=positive, default=1, metavar="K", help="classes to name (default: 1)"
    )
    predict.add_argument(
        "--unknown",
        type=share,
        nargs="?",
        const=UNKNOWN,
        metavar="SHARE",
        help=f"answer '{NONE}' to what is none of the classes; SHARE of what is one of them is "
        f"turned away too (default: {UNKNOWN})",
    )
    form = predict.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--csv", action="store_true", help="print CSV, for scripts")
    predict.set_defaults(run=run_predict, if_interrupted="nothing was changed")


def run_predict(options: argparse.Namespace) -> int:
    """``frugalvae predict``: 1 if an input cannot be read."""
    classifier = load(options)
    names, x, unreadable = gather(options, getattr(classifier, "encoder_", None))
    answers = []
    if len(names):
        chances = classifier.predict_proba(x)
        known = None if options.unknown is None else classifier.knows(x, options.unknown)
        answers = ranked(names, classifier.classes_.tolist(), chances, known, options.top)
    if options.json:
        print(as_text(options.file, answers, unreadable))
    elif options.csv:
        write_csv(answers)
    else:
        show(answers)
    for name, why in unreadable.items():
        complain(f"frugalvae: {name} cannot be read: {why}")
    return 1 if unreadable else 0


def load(options: argparse.Namespace) -> Any:
    """The classifier, or as much of it as the question needs."""
    from frugalvae.tool.store import Store

    if options.unknown is not None:
        return Store(options.file).load()
    from frugalvae.tool.answering import load_answering

    return load_answering(Store(options.file))


def gather(
    options: argparse.Namespace, remembered: Remembered
) -> tuple[list[str], NDArray[np.float32], dict[str, str]]:
    """A name and a row of features for each input that can be read; why others cannot."""
    import numpy as np

    from frugalvae.tool.encoder import check_same
    from frugalvae.tool.rows import read_rows

    names, rows, unreadable = [], [], dict[str, str]()
    tables = [path for path in options.inputs if path.suffix == ".npz"]
    for path in tables:
        x, encoder = read_rows(path, ("x", "x_test"))
        check_same(remembered, encoder, options.file, path)
        names += [f"{path}[{row}]" for row in range(len(x))]
        rows.append(x)
    pictures = [path for path in options.inputs if path not in tables]
    if pictures:
        found = images_of(pictures)
        features, places, unreadable = encode(options, remembered, found)
        names += [str(found[place]) for place in places]
        rows.append(features)
    return names, np.concatenate(rows), unreadable


def images_of(inputs: list[Path]) -> list[Path]:
    """The images that were named, and those of folders."""
    from frugalvae.errors import InputError
    from frugalvae.tool.folders import find_images

    found = [image for path in inputs for image in (find_images(path) if path.is_dir() else [path])]
    if not found:
        raise InputError(f"no images in {', '.join(map(str, inputs))}; check the paths")
    return found


def encode(
    options: argparse.Namespace, remembered: Remembered, paths: list[Path]
) -> tuple[NDArray[np.float32], list[int], dict[str, str]]:
    """Features of images, which of them have some, and why others have none."""
    from frugalvae.console import Display
    from frugalvae.tool.encoder import encode_files, load_encoder

    encoder, _ = load_encoder(remembered, choice(options), options.file)
    display = Display(quiet=options.json or options.csv)
    with display.watching():
        done = encode_files(encoder, paths, options.batch_size)
    unreadable = {str(paths[place]): why for place, why in done.reasons.items()}
    return done.features, done.places.tolist(), unreadable
