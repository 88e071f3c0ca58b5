"""Options that several verbs share, and what they come to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.encoders import FROZEN, WHICH
from frugalvae.images.shards import BATCH_SIZE

if TYPE_CHECKING:
    from frugalvae.encoders.remembered import Choice

WAIT = 10.0  # seconds


def classifier_file() -> argparse.ArgumentParser:
    """The file that every verb begins with."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("file", type=Path, metavar="FILE.frugal", help="the classifier")
    return parent


def waiting() -> argparse.ArgumentParser:
    """``--wait``, of verbs that change the file."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument(
        "--wait",
        type=seconds,
        default=WAIT,
        metavar="SECONDS",
        help=f"how long to wait for another process that changes the file (default: {WAIT:g})",
    )
    return parent


def as_json(what: str = "print JSON, for scripts") -> argparse.ArgumentParser:
    """``--json``."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--json", action="store_true", help=what)
    return parent


def which_encoder() -> argparse.ArgumentParser:
    """``--encoder``, ``--model`` and ``--batch-size``."""
    from frugalvae.cli.argument_types import positive

    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument(
        "--encoder",
        choices=FROZEN,
        help="what makes features of images, also as module:Class (default: efficientnet, or what "
        "the file remembers)",
    )
    parent.add_argument(
        "--model",
        metavar="MODEL",
        help=f"{WHICH} (default: what the file remembers)",
    )
    parent.add_argument(
        "--batch-size",
        type=positive,
        default=BATCH_SIZE,
        metavar="N",
        help=f"images that the encoder takes at a time (default: {BATCH_SIZE})",
    )
    return parent


def choice(options: argparse.Namespace) -> Choice:
    """The encoder that was asked for."""
    from frugalvae.encoders.remembered import Choice

    settings = {key: value for part, key, value in getattr(options, "set", []) if part == "encoder"}
    return Choice(options.encoder, options.model, settings)


def seconds(text: str) -> float:
    """A time from zero."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def complain(line: str) -> None:
    """A line on standard error, where results are not."""
    print(f"frugalvae: {line}", file=sys.stderr)
