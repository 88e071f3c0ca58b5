"""Options that several verbs share: how they are typed, checked and read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.encoders import FROZEN
from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE

if TYPE_CHECKING:
    from frugalvae.encoders.remembered import Choice

Parser = argparse._ActionsContainer  # a parser, or a group of its options

WAIT = 10.0  # seconds


# --------------------------------------------------------------------------- options


def add_file(parser: Parser) -> None:
    """The classifier's file, which most verbs begin with."""
    parser.add_argument("file", type=Path, metavar="FILE.frugal", help="the classifier")


def add_trust(parser: Parser) -> None:
    """``--trust``, of verbs that make a model of the file."""
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module if the file names a memory or a head of it; may be given again",
    )


def add_label(parser: Parser) -> None:
    """The class that a verb is about."""
    parser.add_argument("label", metavar="CLASS", help="a class that the classifier knows")


def add_case(parser: Parser) -> None:
    """``--case-matters``."""
    parser.add_argument(
        "--case-matters",
        action="store_true",
        help="allow class names that differ only in upper and lower case",
    )


def add_wait(parser: Parser) -> None:
    """``--wait``, of verbs that change the file."""
    parser.add_argument(
        "--wait",
        type=seconds,
        default=WAIT,
        metavar="SECONDS",
        help="how long to wait while another process changes the file (default: %(default)g)",
    )


def add_quiet(parser: Parser, about: str = "print nothing but errors") -> None:
    """``--quiet``."""
    parser.add_argument("--quiet", action="store_true", help=about)


def add_json(parser: Parser, about: str = "print JSON, for scripts") -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help=about)


def add_strict(parser: Parser) -> None:
    """``--strict``, of verbs that read folders."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="do nothing if a file cannot be read or is not an image; without it such files are "
        "left out, counted by reason, and named in --json",
    )


def add_folders(parser: Parser) -> None:
    """``--depth`` and ``--strict``, of verbs that find classes in folders."""
    parser.add_argument(
        "--depth",
        type=positive,
        metavar="N",
        help="classes are folders this many levels deep, and folders inside them belong to them; "
        "1 is the first level (default: the outermost folders with images of their own)",
    )
    add_strict(parser)


def add_output(parser: Parser, about: str, default: str | None = None, **more: Any) -> None:
    """``-o`` and ``--output``."""
    path = None if default is None else Path(default)
    about += "" if default is None else f" (default: {default})"
    more.setdefault("metavar", "FILE")
    parser.add_argument("-o", "--output", type=Path, default=path, help=about, **more)


def add_seed(parser: Parser, about: str, default: int | None = 0) -> None:
    """``--seed``."""
    parser.add_argument("--seed", type=from_zero, default=default, metavar="N", help=about)


def add_settings(parser: Parser, about: str) -> None:
    """``--set PART.NAME=VALUE``, which may be given several times."""
    parser.add_argument(
        "--set", action="append", default=[], type=setting, metavar="PART.NAME=VALUE", help=about
    )


def add_encoder(parser: Parser) -> None:
    """``--encoder`` and ``--model``, where an encoder is chosen; and ``--batch-size``."""
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help=f"the frozen encoder: {', '.join(FROZEN)} (default: efficientnet)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the encoder's model: for efficientnet lite0 (default), lite1 or lite2; for onnx an "
        ".onnx file; for the others a folder; or a name on the Hugging Face hub, such as "
        "openai/clip-vit-large-patch14",
    )
    add_batch_size(parser)


def add_same_encoder(parser: Parser) -> None:
    """The same, where the file remembers its encoder."""
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help="the file's encoder in another format: onnx or transformers",
    )
    parser.add_argument(
        "--model", metavar="MODEL", help="where the model of the file's encoder is, if it has moved"
    )
    add_batch_size(parser)


def add_batch_size(parser: Parser) -> None:
    """``--batch-size``."""
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=BATCH_SIZE,
        metavar="N",
        help="how many images are encoded at a time (default: %(default)s)",
    )


def add_ray(parser: Parser, what: str) -> None:
    """``--ray``, ``--ray-address`` and ``--gpus``; ``what`` is what each Ray task does."""
    parser.add_argument("--ray", action="store_true", help="run on Ray, on this machine")
    parser.add_argument(
        "--ray-address", metavar="ADDRESS", help="run on an existing Ray cluster, or 'auto'"
    )
    parser.add_argument(
        "--gpus",
        type=float,
        default=0.0,
        metavar="N",
        help=f"GPUs that each {what} takes on Ray, which may be a fraction (default: 0)",
    )


# --------------------------------------------------------------------------- values


def positive(text: str) -> int:
    """A whole number above zero."""
    return whole(text, 1)


def from_zero(text: str) -> int:
    """A whole number from zero."""
    return whole(text, 0)


def whole(text: str, least: int) -> int:
    """A whole number that is at least ``least``."""
    if not text.strip().isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
    return int(text)


def share(text: str) -> float:
    """A number between 0 and 1."""
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def seconds(text: str) -> float:
    """A time from zero."""
    value = number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def number(text: str) -> float:
    """A number; NaN, which fails every comparison, if it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


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


# --------------------------------------------------------------------------- what they come to


def settings_of(options: argparse.Namespace, *parts: str) -> dict[str, dict[str, Any]]:
    """The settings of ``--set`` by part; a part that the verb does not have is refused."""
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for part, name, value in options.set:
        if part not in found:
            raise InputError(
                f"--set {part}.{name}: there is no {part} here, only {' and '.join(parts)}"
            )
        found[part][name] = value
    return found


def choice(options: argparse.Namespace) -> Choice:
    """The encoder that was asked for."""
    from frugalvae.encoders.remembered import Choice

    settings = {key: value for part, key, value in getattr(options, "set", []) if part == "encoder"}
    return Choice(options.encoder, options.model, settings)


def refuse_encoder(options: argparse.Namespace, features: Path) -> None:
    """Refuse an encoder where only features are given: nothing is left to encode."""
    given = [f"--{name}" for name in ("encoder", "model") if getattr(options, name) is not None]
    given += ["--set encoder"] if any(part == "encoder" for part, *_ in _set(options)) else []
    if given:
        raise InputError(
            f"{features} holds features, so no image is encoded; leave out {' and '.join(given)}"
        )


def _set(options: argparse.Namespace) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = getattr(options, "set", [])
    return found
