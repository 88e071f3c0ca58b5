"""``frugalvae explain``: show which parts of an image support its predicted class."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from frugalvae.cli.options import add, add_encoder, check_output, choice, value
from frugalvae.console import print_json
from frugalvae.errors import InputError
from frugalvae.files import write_bytes
from frugalvae.formatting import local_time, percent, plural, printable
from frugalvae.labels import label_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file")
    parser.add_argument("image", type=Path, metavar="IMAGE", help="an image file")
    value(
        parser,
        "--against",
        "CLASS",
        "the class to compare with (default: the second most probable)",
    )
    add(
        parser,
        "--output",
        metavar="FILE.png",
        help="the image to write (default: IMAGE-explained.png)",
    )
    add(parser, "--json")
    add_encoder(parser, remembered=True)
    add(parser, "--trust")


def run(options: argparse.Namespace) -> None:
    """Show which parts of an image support its most probable class, and which the next one.

    Each part is hidden in turn; it matters if the odds of the two classes change without it. Also
    lists when the two classes were taught, and with how many images.
    """
    from frugalvae.care.explanations import explain
    from frugalvae.encoders import load_encoder
    from frugalvae.images.decode import reading_images
    from frugalvae.images.photographs import reason
    from frugalvae.storage.store import Store

    output = options.output or Path(f"{options.image.stem}-explained.png")
    check_output(output, ".png")
    if not options.image.is_file():
        what = "it is a folder" if options.image.is_dir() else "there is no such file"
        raise InputError(f"{options.image}: {what}; give one image")
    model = Store(options.file, trust=options.trust).load()
    against = options.against and label_named(options.file, model.classes.tolist(), options.against)
    encoder, _ = load_encoder(model.encoder, choice(options), options.file)
    with reading_images():
        try:
            found = explain(model, encoder, options.image, against)
        except InputError:  # not the image's fault
            raise
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{options.image} cannot be read: {reason(error)}") from error
    buffer = io.BytesIO()
    found.picture().save(buffer, "PNG")
    write_bytes(output, buffer.getvalue())
    result = found.to_json(model)
    if options.json:
        print_json({**result, "picture": str(output)})
        return
    for one in result["classes"]:
        for line in lines(one):
            print(printable(line))
    print(printable(f"{output}: the photograph, and the parts that support each class"))


def lines(one: dict[str, Any]) -> list[str]:
    """A class in words.

    >>> one = {"label": "wren", "probability": 0.9, "part": "centre", "taught": []}
    >>> lines(one)
    ['wren 90.0%: supported mostly at the centre']
    """
    where = f"mostly at the {one['part']}" if one["part"] else "by hardly any part of the image"
    dates = [
        f"{plural(event['samples'], 'photograph')} on {local_time(str(event['when']))}"
        for event in one["taught"]
    ]
    first = f"{one['label']} {percent(one['probability'])}: supported {where}"
    return [first] + ([f"  taught {', '.join(dates)}"] if dates else [])
