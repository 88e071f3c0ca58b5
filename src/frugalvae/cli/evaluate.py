"""``frugalvae evaluate``: a classifier on test images, and a page about it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from frugalvae.cli.argument_types import folders, quiet
from frugalvae.cli.options import as_json, choice, classifier_file, which_encoder


def add_evaluate(verbs: Any) -> None:
    """The options of ``frugalvae evaluate``."""
    evaluate = verbs.add_parser(
        "evaluate",
        help="test a classifier on images, and write a page about it",
        description="Classify images whose classes are known, and write a page: accuracy by class "
        "and task, what is taken for what, the wrong images, and whether probabilities can be "
        "believed. Each folder of images is a class; of train/ and test/, test/ is taken.",
        parents=[classifier_file(), which_encoder(), folders(), as_json(), quiet()],
    )
    evaluate.add_argument(
        "images",
        type=Path,
        metavar="IMAGES",
        help="a folder of test images, a zip archive of it, or a feature file (.npz)",
    )
    evaluate.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("evaluation.html"),
        metavar="FILE",
        help="the page to write (default: evaluation.html)",
    )
    evaluate.set_defaults(run=run_evaluate)


def run_evaluate(options: argparse.Namespace) -> None:
    """``frugalvae evaluate``."""
    from frugalvae.cli.evaluation import evaluate

    evaluate(
        options.file,
        options.images,
        options.output,
        choice=choice(options),
        batch_size=options.batch_size,
        quiet=options.quiet,
        json=options.json,
        depth=options.depth,
        strict=options.strict,
    )
