"""The encoder of a classifier: chosen once, remembered in its file, and checked ever after.

A file remembers the name of an encoder, and where its model is. Both are data: an encoder that
is not ours nor installed, and any model but those that our code itself names, are used only if
whoever calls has named them on this very call.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frugalvae.encoders import FROZEN, MANY, check_frozen, make_frozen
from frugalvae.errors import InputError
from frugalvae.parts.protocols import Encoder
from frugalvae.parts.registry import check_trusted

DEFAULT = "efficientnet"  # whose models our code names
GIVEN = "given"  # where it is remembered how to make the encoder again
#: What tells encoders apart: a model may be moved and renamed.
TELLING = ("encoder", "preprocessing", "weights", "unit", "views")

#: An encoder's identity, and how it was asked for; None for features of unknown origin.
Remembered = dict[str, Any] | None


@dataclass(frozen=True)
class Choice:
    """An encoder as it was asked for; None and nothing for what was not.

    Attributes
    ----------
    trust
        Modules and models that whoever calls has named besides, which a file may name.
    """

    encoder: str | None = None
    model: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    trust: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """All that whoever calls has named; a path also as it is remembered.

        An encoder or a model that is called as a module might be says nothing of that module.
        """
        asked = [findable(name) for name in (self.encoder, self.model) if name]
        places = [name for name in asked if not all(map(str.isidentifier, name.split(".")))]
        return (*self.trust, *map(findable, self.trust), *places)


def choose(remembered: Remembered, choice: Choice, file: Path | str) -> dict[str, Any]:
    """Name and settings of the encoder: those remembered, or those asked for.

    Parameters
    ----------
    remembered
        What the file says; an empty one if there is no file yet.
    choice
        What was typed.
    """
    if remembered is None:
        raise InputError(
            f"{file} was taught features, and does not say which encoder made them: images cannot "
            "be encoded for it; give features (.npz) of the same encoder"
        )
    before = remembered.get(GIVEN) or implied(remembered)
    name = before.get("name") or remembered.get("encoder") or DEFAULT
    if choice.encoder is not None and remembered and choice.encoder != name:
        if not {choice.encoder, name} <= MANY.keys():
            raise InputError(
                f"--encoder {choice.encoder}: {file} was taught with {name}, and features of "
                "another encoder mean nothing to it; leave --encoder out, or start another file"
            )
        before = {}  # the same network in another format, perhaps
    name = choice.encoder or name
    check_named(name, choice.named, file)
    settings = {**looks(remembered), **before.get("settings", {}), **choice.settings}
    if choice.model is not None:
        settings["model"] = findable(choice.model) if name in MANY else choice.model
    elif "model" in settings and name != DEFAULT and "model" not in choice.settings:
        check_model_named(settings["model"], choice.named, file)
    check_frozen(name)
    check_model(name, settings.get("model"), file)
    return {"name": name, "settings": settings}


def check_named(name: str, named: Collection[str], file: Path | str) -> None:
    """Refuse an encoder from outside that only a file names, and nobody has installed."""
    if ":" in name and not FROZEN.offers(name):
        what = f"{file} was taught with the encoder {name}, which is not part of frugalvae"
        check_trusted(name, named, what, "--encoder", name)


def check_model_named(model: str, named: Collection[str], file: Path | str) -> None:
    """Refuse a model that only a file names: a path to open, or a name to ask a hub for."""
    check_trusted(model, named, f"{file} was taught with the model {model}", "--model", model)


def check_carried(remembered: Remembered, named: Collection[str], file: Path | str) -> None:
    """Refuse to copy the name of an encoder from outside into another file."""
    for name in names_of(remembered or {}):
        check_named(name, named, file)


def names_of(remembered: Mapping[str, Any]) -> list[str]:
    """What an encoder is called, and how it was asked for."""
    found = (remembered.get("encoder"), (remembered.get(GIVEN) or {}).get("name"))
    return [name for name in found if name]


def looks(remembered: Mapping[str, Any]) -> dict[str, Any]:
    """How an encoder looks at images, as far as its identity tells what is not the default now.

    >>> looks({"encoder": "efficientnet", "views": 4})
    {'views': 4, 'unit': False}
    >>> looks({}), looks({"encoder": "efficientnet", "unit": True})
    ({}, {})
    """
    found = {"views": remembered["views"]} if "views" in remembered else {}
    if remembered.get("encoder") == "efficientnet" and "unit" not in remembered:
        found["unit"] = False  # it was taught before there was a choice
    return found


def implied(remembered: Mapping[str, Any]) -> dict[str, Any]:
    """How to make an encoder of which only the identity is known.

    >>> implied({"encoder": "clip", "model": "openai/clip-vit-base-patch32"})
    {'settings': {'model': 'openai/clip-vit-base-patch32'}}
    >>> implied({"encoder": "efficientnet", "model": "efficientnet-lite2"})
    {'settings': {'model': 'lite2'}}
    """
    model, prepared = str(remembered.get("model")), remembered.get("preprocessing")
    crop = prepared.get("crop") if isinstance(prepared, Mapping) else None
    if remembered.get("encoder") in MANY and "/" in model:  # of a folder only the end is told
        return {"settings": {"model": model}}
    if remembered.get("encoder") == "efficientnet":
        found = {"size": crop[0]} if crop else {}
        if model.startswith("efficientnet-"):
            found["model"] = model.removeprefix("efficientnet-")
        return {"settings": found}
    return {}


def check_model(name: str, model: str | None, file: Path | str) -> None:
    """Refuse a choice that no encoder can be made of."""
    if model is None and name in MANY:
        raise InputError(f"{file}: which model is its {name}? Give --model with {MANY[name]}")
    if model is not None and os.path.isabs(model) and not os.path.exists(model):
        raise InputError(
            f"{model}: there is no such file or folder; say with --model where the {name} of "
            f"{file} is"
        )


def load_encoder(
    remembered: Remembered, choice: Choice, file: Path | str
) -> tuple[Encoder, dict[str, Any]]:
    """The encoder, and what the file is to remember of it."""
    given = choose(remembered, choice, file)
    made = make_frozen(given["name"], **given["settings"])
    check_same(remembered, made.identity, file, "the encoder here")
    return made, {**made.identity, GIVEN: given}


def check_same(
    remembered: Remembered, other: Remembered, file: Path | str, what: str | Path
) -> None:
    """Refuse features of another encoder than those that were learned."""
    if not remembered or not other:
        return  # nothing is known of one of them
    differ = differences(remembered, other)
    if differ:
        raise InputError(
            f"{what} does not fit {file}: {' and '.join(differ)} differ "
            f"({described(other)}, expected {described(remembered)}); "
            "use the same encoder with the same weights and settings, or start another file"
        )


def check_views(remembered: Remembered, views: int | None, file: Path | str) -> None:
    """Refuse another number of views than a file's, before anything is encoded.

    >>> check_views({"encoder": "efficientnet", "views": 4}, 2, "birds.frugal")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: --views 2: birds.frugal was taught with --views 4; ...
    """
    before = (remembered or {}).get("views", 1)
    if remembered and views not in (None, before):
        raise InputError(
            f"--views {views}: {file} was taught with --views {before}; leave it out, or start "
            "another file"
        )


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What makes features of two encoders incomparable; nothing if they are of one network.

    >>> differences({"encoder": "onnx", "views": 2}, {"encoder": "onnx", "views": 4})
    ['views']
    """
    found = [key for key in TELLING if one.get(key) != other.get(key)]
    return [] if found and in_another_format(one, other) else found


def in_another_format(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether it is the same network in ONNX and in PyTorch: its features agree."""
    from frugalvae.encoders.identity import agree

    alike = all(one.get(key) == other.get(key) for key in ("preprocessing", "views"))
    formats = one.get("encoder") != other.get("encoder")
    return formats and alike and agree(one.get("probe"), other.get("probe"))


def described(remembered: Mapping[str, Any]) -> str:
    """An encoder in a few words.

    >>> described({"encoder": "clip", "model": "vit-b32", "weights": "1a2b3c4d5e6f"})
    'clip vit-b32, weights 1a2b3c4d'
    >>> described({"encoder": "efficientnet", "views": 4})
    'efficientnet, 4 views'
    """
    model = str(remembered.get("model") or "")
    name = " ".join(filter(None, [str(remembered.get("encoder", "unnamed")), model]))
    weights = str(remembered.get("weights", ""))[:8]
    views = f"{remembered['views']} views" if "views" in remembered else ""
    return ", ".join(filter(None, [name, weights and f"weights {weights}", views]))


def findable(model: str) -> str:
    """A folder or a file from wherever the command is run next; a name as it is."""
    return os.path.abspath(model) if os.path.exists(model) else model
