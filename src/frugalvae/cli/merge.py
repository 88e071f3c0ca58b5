"""``frugalvae merge``: add what other classifiers were taught."""

from __future__ import annotations

import argparse
from pathlib import Path

from frugalvae.cli.options import add, flag, value
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    add(parser, "file", help="the classifier that is changed or made")
    about = "what is added; it stays"
    parser.add_argument("inputs", type=Path, nargs="+", metavar="OTHER.frugal", help=about)
    about = "another name for a class of an added file; may be given again"
    value(parser, "--rename", "OTHER.frugal:CLASS=NAME", about, action="append", default=[])
    about = "add a file that was added already, or that shares photographs: they count twice"
    flag(parser, "--twice", about)
    add(parser, "--case-matters", "--trust", "--wait", "--json", "--quiet")


def run(options: argparse.Namespace) -> None:
    """Add to a classifier what others were taught, apart.

    The result is what one would be that was taught everything, whatever the order. If the first
    file does not exist it is made. Classes of one name become one class. All files must have the
    same encoder, memory and head.
    """
    from frugalvae.storage.store import Store
    from frugalvae.verbs.merge import merge

    store = Store(options.file, trust=options.trust)
    display = Display(options.quiet or options.json)
    rename = dict[Path, list[str]]()
    for text in options.rename:
        path, name = split_name(text, options.inputs)
        rename.setdefault(path, []).append(name)
    with store.changing(f"frugalvae merge {options.file}", options.wait), display.watching():
        how = {"twice": options.twice, "case_matters": options.case_matters}
        found = merge(store, options.inputs, rename=rename, trust=options.trust, **how)
    if not found.merged:
        display.say(f"{options.file} is as it was: the last change was this very merge")
    known, samples = plural(found.classes, "class"), plural(found.samples, "sample")
    display.say(*map(str, found.merged), f"{options.file}: {known}, {samples}, {size(found.bytes)}")
    if options.json:
        print_json(found.to_json())


def split_name(text: str, inputs: list[Path]) -> tuple[Path, str]:
    """``b.frugal:wren=house wren`` as the file, and what its class is to be called."""
    for path in sorted(inputs, key=lambda path: -len(str(path))):
        if text.startswith(f"{path}:") and "=" in text:
            return path, text.removeprefix(f"{path}:")
    raise InputError(
        f"--rename {text}: expected OTHER.frugal:CLASS=NAME with one of the files that are added, "
        f"such as {inputs[0]}:wren=house-wren"
    )
