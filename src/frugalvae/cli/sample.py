"""``frugalvae sample``: features of a class as a classifier remembers them."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

from frugalvae.cli.argument_types import positive, quiet, seed
from frugalvae.cli.options import classifier_file


def add_sample(verbs: Any) -> None:
    """The options of ``frugalvae sample``."""
    sample = verbs.add_parser(
        "sample",
        help="features of a class, as they are remembered",
        description="Draw features of a class from the memory, and write them as .npz: x of "
        "shape (n, d), label, and encoder, which says as JSON what features these are.",
        parents=[classifier_file(), quiet()],
    )
    sample.add_argument("label", metavar="CLASS")
    sample.add_argument(
        "-n", type=positive, default=100, metavar="N", help="how many (default: 100)"
    )
    sample.add_argument(
        "-o", "--output", type=Path, metavar="FILE.npz", help="(default: CLASS.npz)"
    )
    sample.add_argument("--seed", type=seed, help="other samples (default: the classifier's own)")
    sample.set_defaults(run=run_sample)


def run_sample(options: argparse.Namespace) -> None:
    """``frugalvae sample``."""
    import numpy as np

    from frugalvae.cli.summary import label_named
    from frugalvae.console import Display
    from frugalvae.files import check_place, write_bytes
    from frugalvae.storage.store import Store

    output = options.output or Path(options.label.replace("/", "-") + ".npz")
    check_place(output)
    model = Store(options.file).load()
    label = label_named(options.file, model.classes.tolist(), options.label)
    x = model.sample(label, options.n, options.seed)
    encoder = model.encoder
    told: dict[str, Any] = {} if encoder is None else {"encoder": np.array(json.dumps(encoder))}
    buffer = io.BytesIO()
    np.savez(buffer, x=x, label=np.array(label), **told)
    write_bytes(output, buffer.getvalue())
    Display(options.quiet).say(f"{output}: {len(x):,} features of {label!r}, {x.shape[1]} numbers")
