"""``frugalvae sample``: draw features of a class from the memory."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

from frugalvae.cli.options import (
    add_file,
    add_label,
    add_output,
    add_quiet,
    add_seed,
    add_trust,
    positive,
)
from frugalvae.formatting import plural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Draw features of a class from the memory, and write them as .npz: x of shape (n, d), "
        "label, and encoder, which says as JSON what made such features."
    )
    add_file(parser)
    add_label(parser)
    parser.add_argument(
        "-n", type=positive, default=100, metavar="N", help="how many (default: %(default)s)"
    )
    add_output(parser, "the file to write (default: CLASS.npz)", metavar="FILE.npz")
    add_seed(parser, "seed of the draw (default: the seed of the classifier)", default=None)
    add_trust(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Draw, and write."""
    import numpy as np

    from frugalvae.cli.summary import label_named
    from frugalvae.console import Display
    from frugalvae.files import check_place, write_bytes
    from frugalvae.storage.store import Store

    output = options.output or Path(options.label.replace("/", "-") + ".npz")
    check_place(output)
    model = Store(options.file, trust=options.trust).load()
    label = label_named(options.file, model.classes.tolist(), options.label)
    x = model.sample(label, options.n, options.seed)
    encoder = model.encoder
    told: dict[str, Any] = {} if encoder is None else {"encoder": np.array(json.dumps(encoder))}
    buffer = io.BytesIO()
    np.savez(buffer, x=x, label=np.array(label), **told)
    write_bytes(output, buffer.getvalue())
    Display(options.quiet).say(
        f"{output}: {plural(len(x), 'feature')} of {label!r}, of dimension {x.shape[1]}"
    )
