"""What the command line's arguments may look like, and options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any


def quiet() -> argparse.ArgumentParser:
    """``--quiet``."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parent


def strict() -> argparse.ArgumentParser:
    """``--strict``, of verbs that read folders."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument(
        "--strict",
        action="store_true",
        help="do nothing if a file cannot be read or is no image; without it such files are "
        "left out, counted by reason, and named in --json",
    )
    return parent


def folders() -> argparse.ArgumentParser:
    """``--depth`` and ``--strict``, of verbs that find classes in folders."""
    parent = strict()
    parent.add_argument(
        "--depth",
        type=positive,
        metavar="N",
        help="classes are folders so many levels deep, and folders inside them belong to them: 1 "
        "for the first level (default: the outermost folders with images of their own; what was "
        "assumed is said)",
    )
    return parent


def settings(what: str) -> argparse.ArgumentParser:
    """``--set PART.NAME=VALUE``, as often as there is something to change."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument(
        "--set", action="append", default=[], type=setting, metavar="PART.NAME=VALUE", help=what
    )
    return parent


def one_seed() -> argparse.ArgumentParser:
    """``--seed``."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--seed", type=seed, default=0, help="of everything random (default: 0)")
    return parent


def on_ray(what: str) -> argparse.ArgumentParser:
    """``--ray``, ``--ray-address`` and ``--gpus``; ``what`` is done by each task."""
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--ray", action="store_true", help="run on Ray, on this machine")
    parent.add_argument(
        "--ray-address", metavar="ADDRESS", help="run on an existing Ray cluster, or 'auto'"
    )
    parent.add_argument(
        "--gpus", type=float, default=0.0, metavar="N", help=f"of a GPU for each {what} on Ray"
    )
    return parent


def positive(text: str) -> int:
    """A whole number above zero."""
    return whole(text, 1)


def seed(text: str) -> int:
    """A whole number from zero."""
    return whole(text, 0)


def share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def whole(text: str, least: int) -> int:
    """A whole number that is at least ``least``."""
    if not text.strip().isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
    return int(text)


def task_sizes(text: str) -> int | list[int]:
    """``10``, or ``50,10,10``."""
    numbers = [positive(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def setting(text: str) -> tuple[str, str, Any]:
    """``memory.epochs=50`` as ("memory", "epochs", 50)."""
    import ast

    name, equals, value = text.partition("=")
    part, dot, key = name.partition(".")
    if not (equals and dot and key and part in ("memory", "head", "encoder")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form memory.NAME=VALUE, head.NAME=VALUE or encoder.NAME=VALUE"
        )
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return part, key, words[value.lower()]
    try:
        return part, key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return part, key, value
