"""``frugalvae sample``: draw features of a class from the memory."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

from frugalvae.cli.options import add, check_output, positive
from frugalvae.console import Display
from frugalvae.files import write_bytes
from frugalvae.formatting import plural
from frugalvae.labels import label_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", "label")
    about = "how many features to draw (default: %(default)s)"
    parser.add_argument("-n", type=positive, default=100, metavar="N", help=about)
    add(parser, "--output", metavar="FILE.npz", help="the file to write (default: CLASS.npz)")
    about = "seed of the random numbers (default: the seed of the classifier)"
    add(parser, "--seed", default=None, help=about)
    add(parser, "--trust", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Draw features of a class from the memory, and write them as .npz.

    The file has the arrays x, of shape (n, d), label, and encoder: JSON about the encoder of such
    features.
    """
    import numpy as np

    from frugalvae.storage.store import Store

    output = options.output or Path(options.label.replace("/", "-") + ".npz")
    check_output(output, ".npz")
    model = Store(options.file, trust=options.trust).load()
    label = label_named(options.file, model.classes.tolist(), options.label)
    x, made_by = model.sample(label, options.n, options.seed), model.encoder
    arrays: dict[str, Any] = {"x": x, "label": np.array(label)}
    arrays |= {} if made_by is None else {"encoder": np.array(json.dumps(made_by))}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_bytes(output, buffer.getvalue())
    Display(options.quiet).say(
        f"{output}: {plural(len(x), 'feature')} of {label!r}, of dimension {x.shape[1]}"
    )
