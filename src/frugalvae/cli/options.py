"""Options that several verbs share: how they are typed, checked and read."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.encoders import ENCODERS, VIEWS
from frugalvae.errors import InputError
from frugalvae.files import check_place
from frugalvae.images import BATCH_SIZE, holds_features
from frugalvae.parts import HEADS, MEMORIES

if TYPE_CHECKING:
    from frugalvae.encoders import Choice
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples

Parser = argparse._ActionsContainer  # a parser, or a group of its options


def add(parser: Parser, *names: str, **changes: Any) -> None:
    """Let some of the :data:`SHARED` options be typed; ``changes`` are what differs here."""
    for name in names:
        short = ["-o"] if name == "--output" else []
        parser.add_argument(*short, name, **SHARED[name] | changes)


def flag(parser: Parser, name: str, about: str, *short: str) -> None:
    """Let a word be typed that changes what is done."""
    parser.add_argument(*short, name, action="store_true", help=about)


def value(parser: Parser, name: str, metavar: str, about: str, **how: Any) -> None:
    """Let a word be typed with a value; ``how`` is what else argparse takes, such as ``type``."""
    parser.add_argument(name, metavar=metavar, help=about, **how)


def add_encoder(parser: Parser, *, remembered: bool = False) -> None:
    """What is typed of the encoder: which one, or where it is if the file remembers which."""
    encoder = {"help": "open the file's encoder in another format: onnx or transformers"}
    model = {"help": "where the encoder's model is, if it has moved since the file was made"}
    add(parser, "--encoder", **encoder if remembered else {})
    add(parser, "--model", **model if remembered else {})
    if not remembered:
        add(parser, "--views")
    add(parser, "--batch-size")


def add_ray(parser: Parser, what: str) -> None:
    """``--ray``, ``--ray-address`` and ``--gpus``; ``what`` is what each Ray task does."""
    flag(parser, "--ray", "run on Ray, on this machine")
    value(parser, "--ray-address", "ADDRESS", "run on an existing Ray cluster, or 'auto'")
    about = f"GPUs that each {what} takes on Ray, which may be a fraction (default: 0)"
    value(parser, "--gpus", "N", about, type=float, default=0.0)


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


def percentage(text: str) -> float:
    """A share, also in percent.

    >>> percentage("2%"), percentage("0.02")
    (0.02, 0.02)
    """
    if not text.endswith("%"):
        return share(text)
    try:
        value = float(text[:-1]) / 100
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no share; expected one such as 2% or 0.02"
        ) from error
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0% and 100%")
    return value


def share(text: str) -> float:
    """A number between 0 and 1."""
    value = number(text)
    if not 0 < value < 1:
        hint = f"; write {text}% for percent" if 1 <= value < 100 else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1{hint}")
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
    from frugalvae.encoders import Choice

    changes = getattr(options, "set", [])  # not of verbs whose file remembers the encoder
    settings = {key: value for part, key, value in changes if part == "encoder"}
    views = getattr(options, "views", None)
    if views is not None and settings.setdefault("views", views) != views:
        raise InputError(
            f"--views {views} and --set encoder.views={settings['views']}: leave one of them out"
        )
    return Choice(options.encoder, options.model, settings, tuple(getattr(options, "trust", ())))


def refuse_encoder(options: argparse.Namespace, features: Path) -> None:
    """Refuse an encoder where only features are given: nothing is left to encode."""
    chosen = choice(options)
    given = [f"--{name}" for name in ("encoder", "model") if getattr(chosen, name) is not None]
    settings = [f"--{'views' if name == 'views' else 'set encoder'}" for name in chosen.settings]
    given += dict.fromkeys(settings)  # each once
    if given:
        raise InputError(
            f"{features} holds features, so no image is encoded; leave out {' and '.join(given)}"
        )


def encoder_of(
    samples: Samples, remembered: dict[str, Any] | None, options: argparse.Namespace
) -> Encoder | None:
    """What makes features of photographs; of features only whether they fit what is remembered."""
    return samples.encoder(remembered, choice(options), options.file or samples.name)[0]


def check_source(options: argparse.Namespace) -> None:
    """Refuse a ``source`` that does not exist, and an encoder if it holds features."""
    if not options.source.exists():
        raise InputError(f"{options.source}: there is no such file or folder; check the path")
    if holds_features(options.source):
        refuse_encoder(options, options.source)


def check_output(output: Path, *known: str) -> None:
    """Refuse a file that cannot be written, or whose ending promises another format."""
    if output.suffix and output.suffix.lower() not in known:
        raise InputError(f"{output} has the ending {output.suffix}; expected {' or '.join(known)}")
    check_place(output)


# --------------------------------------------------------------------------- all of them


def _value(metavar: str, about: str, **how: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": about, **how}


def _flag(about: str) -> dict[str, Any]:
    return {"action": "store_true", "help": about}


#: What :func:`add` knows, each with what argparse takes.
SHARED: dict[str, dict[str, Any]] = {
    "file": _value("FILE.frugal", "the classifier", type=Path),
    "label": _value("CLASS", "a class that the classifier knows"),
    "source": _value(
        "FOLDER", "a folder of images, a zip archive of it, or a feature file (.npz)", type=Path
    ),
    "--batch-size": _value(
        "N",
        "how many images are encoded at a time (default: %(default)s)",
        type=positive,
        default=BATCH_SIZE,
    ),
    "--case-matters": _flag("allow class names that differ only in upper and lower case"),
    "--depth": _value(
        "N",
        "classes are folders this many levels deep, and folders inside them belong to them; 1 is "
        "the first level (default: the outermost folders with images of their own)",
        type=positive,
    ),
    "--encoder": _value(
        "NAME", f"the frozen encoder: {', '.join(ENCODERS)} (default: efficientnet)"
    ),
    "--head": _value(
        "NAME", f"{', '.join(HEADS)}, or module:Class (default: the memory's usual head)"
    ),
    "--jobs": {"type": positive, "default": os.cpu_count() or 1, "metavar": "N"},
    "--json": _flag("print JSON, for scripts"),
    "--memory": _value("NAME", f"{', '.join(MEMORIES)}, or module:Class (default: moments)"),
    "--model": _value(
        "MODEL",
        "the encoder's model: lite0 (default), lite1 or lite2 for efficientnet; an .onnx file, a "
        "folder, or a name on the Hugging Face hub, such as openai/clip-vit-large-patch14, for "
        "the others",
    ),
    "--output": {"type": Path, "metavar": "FILE"},
    "--quiet": _flag("print nothing but errors"),
    "--seed": _value("N", "seed of everything random (default: 0)", type=from_zero, default=0),
    "--set": {"action": "append", "default": [], "type": setting, "metavar": "PART.NAME=VALUE"},
    "--strict": _flag(
        "do nothing if a file cannot be read or is not an image; without it such files are left "
        "out, counted by reason, and listed in --json"
    ),
    "--trust": _value(
        "NAME",
        "a module, a module:Class or a model that the file names, and that you know: without this "
        "option it is not imported, opened or fetched; may be repeated",
        action="append",
        default=[],
    ),
    "--views": {
        "type": int,
        "choices": VIEWS,
        "help": "average the features of this many views of each image, enlarged and mirrored: "
        "better with few images per class, and as many times slower (default: 1)",
    },
    "--wait": _value(
        "SECONDS",
        "how long to wait while another process changes the file (default: %(default)g)",
        type=seconds,
        default=10.0,
    ),
}
