"""``frugalvae predict``: name what is in images."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from frugalvae.cli.answers import FIELDS, NONE, as_text, ranked, show, write_csv
from frugalvae.cli.argument_types import positive, share, strict
from frugalvae.cli.options import classifier_file, which_encoder
from frugalvae.cli.output import complain

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
        parents=[classifier_file(), which_encoder(), strict()],
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
        f"turned away too (default: {UNKNOWN}). Put it behind the images",
    )
    form = predict.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--csv", action="store_true", help="print CSV, for scripts")
    predict.set_defaults(run=run_predict, if_interrupted="nothing was changed")


def run_predict(options: argparse.Namespace) -> int:
    """``frugalvae predict``: 1 if an input cannot be read."""
    from frugalvae.cli.inputs import gather
    from frugalvae.images.feature_file import read_rows
    from frugalvae.images.left_out import counted, refuse
    from frugalvae.storage.store import Store

    model = Store(options.file).load(thorough=options.unknown is not None)
    given = gather(
        options,
        model.encoder,
        lambda path: read_rows(path, ("x", "x_test")),
        progress(options),
    )
    if options.strict:
        refuse(given.skipped)
    names, x, unreadable = given.names, given.x, given.unreadable
    answers = []
    if len(names):
        chances = model.predict_proba(x)
        known = None if options.unknown is None else model.familiarity(x) >= options.unknown
        answers = ranked(names, model.classes.tolist(), chances, known, options.top)
    if options.json:
        print(as_text(options.file, answers, unreadable, given.skipped))
    elif options.csv:
        write_csv(answers)
    else:
        show(answers)
    for line in counted({} if options.json else given.skipped):
        complain(line)
    for name, why in unreadable.items():
        complain(f"{name} cannot be read: {why}")
    return 1 if unreadable else 0


def progress(options: argparse.Namespace) -> AbstractContextManager[None]:
    """A bar where somebody looks at one: elsewhere, an answer need not wait for it."""
    if options.json or options.csv or not sys.stdout.isatty():
        return nullcontext()
    from frugalvae.console import Display

    return Display().watching()
