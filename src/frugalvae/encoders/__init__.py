"""Encoders: what makes features of images. Each passes :func:`frugalvae.testing.check_encoder`.

An encoder is chosen once, remembered in a classifier's file, and checked ever after. The file
remembers its name, and where its model is. Both are data: an encoder that is not ours nor
installed, and any model but those that our code itself names, are used only if whoever calls has
named them on this very call.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.parts.registry import Registry, check_trusted

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Encoder

#: Pretrained encoders that stay as they are, by name.
ENCODERS = Registry(
    "frozen encoder",
    {
        "efficientnet": ("frugalvae.encoders.efficientnet:EfficientNetEncoder", {}),
        "onnx": ("frugalvae.encoders.onnx:OnnxEncoder", {}),
        "transformers": ("frugalvae.encoders.transformers:TransformersEncoder", {}),
    },
    group="frugalvae.encoders",
    attributes=("dim", "side", "identity"),
    methods=("prepare", "encode", "text_features", "to"),
    defaults="frugalvae.encoders.defaults.EncoderDefaults",
)

#: What ``--model`` has to be, for encoders that compute any model. One network may be had in both
#: formats: the mark of its features tells.
MODEL_HELP = {
    "onnx": "an .onnx file, a folder with one, or a name on the Hugging Face hub such as "
    "Xenova/clip-vit-base-patch32",
    "transformers": "a folder in the format of transformers, or a name on the Hugging Face hub "
    "such as openai/clip-vit-large-patch14",
}

#: How many views of a photograph an encoder may average.
VIEWS = (1, 2, 4)

DEFAULT = "efficientnet"  # whose models our code names
GIVEN = "given"  # where it is remembered how to make the encoder again
#: What distinguishes encoders: a model may be moved and renamed.
IDENTITY_KEYS = ("encoder", "preprocessing", "weights", "unit", "views")

#: An encoder's identity, and how it was asked for; None for features of unknown origin.
Remembered = dict[str, Any] | None


def make_encoder(name: str, **settings: Any) -> Encoder:
    """The pretrained encoder of that name, which the caller chose, with its settings.

    A name that a file gives goes through :func:`frugalvae.encoders.choose` before.
    Every encoder takes ``views``: how many views of a photograph it averages
    (:class:`frugalvae.encoders.defaults.Views`).

    >>> make_encoder("resnet18")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UnknownNameError: there is no frozen encoder 'resnet18'. Known: ...
    """
    _ = ENCODERS[name]  # or say which there are
    views = settings.pop("views", 1)
    check_number("views", views, VIEWS[0], VIEWS[-1], whole=True)
    check_choice("views", views, VIEWS)
    made: Encoder = ENCODERS.make(name, settings, trust=[name])
    if views == 1:
        return made
    from frugalvae.encoders.defaults import Views

    return Views(made, views)


# -------------------------------------------------------------------- the encoder that a file names


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
        names = [findable(name) for name in (self.encoder, self.model) if name]
        places = [name for name in names if not all(map(str.isidentifier, name.split(".")))]
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
            f"{file} was taught features of an unknown encoder: images cannot "
            "be encoded for it; give features (.npz) of the same encoder"
        )
    before = (remembered.get(GIVEN) or {}).get("name") or remembered.get("encoder") or DEFAULT
    name, settings = choice.encoder or before, settings_of(remembered)
    if remembered and name != before:
        if name not in MODEL_HELP or not (before in MODEL_HELP or "probe" in remembered):
            raise InputError(
                f"--encoder {name}: {file} was taught with {before}, and features of "
                "another encoder mean nothing to it; leave --encoder out, or start another file"
            )
        settings = {key: value for key, value in settings.items() if key == "views"}
    check_named(name, choice.named, file)
    settings |= choice.settings
    model = settings.get("model")
    if choice.model is not None:
        model = findable(choice.model) if name in MODEL_HELP else choice.model
        settings["model"] = model
    elif model is not None and name != DEFAULT and "model" not in choice.settings:
        what = f"{file} was taught with the model {model}"  # a path, or a name for the hub
        check_trusted(model, choice.named, what, "--model", model)
    if model is None and name in MODEL_HELP:
        raise InputError(f"{file}: which model is its {name}? Give --model with {MODEL_HELP[name]}")
    if model is not None and os.path.isabs(model) and not os.path.exists(model):
        raise InputError(
            f"{model}: there is no such file or folder; give with --model where the {name} of "
            f"{file} is"
        )
    return {"name": name, "settings": settings}


def settings_of(remembered: Mapping[str, Any]) -> dict[str, Any]:
    """What an encoder is made again with: as it was given, else as its identity implies.

    >>> settings_of({"encoder": "onnx", "model": "openai/clip-vit-base-patch32", "views": 4})
    {'views': 4, 'model': 'openai/clip-vit-base-patch32'}
    >>> settings_of({"encoder": "efficientnet", "model": "efficientnet-lite2", "unit": True})
    {'model': 'lite2'}
    """
    found = {"views": remembered["views"]} if "views" in remembered else {}
    model, prepared = str(remembered.get("model")), remembered.get("preprocessing")
    given, encoder = remembered.get(GIVEN), remembered.get("encoder")
    if encoder == "efficientnet" and "unit" not in remembered:
        found["unit"] = False  # it was taught before there was a choice
    if given:
        return {**found, **given.get("settings", {})}
    if encoder == "efficientnet":
        if isinstance(prepared, Mapping) and prepared.get("crop"):
            found["size"] = prepared["crop"][0]
        if model.startswith("efficientnet-"):
            found["model"] = model.removeprefix("efficientnet-")
    elif encoder in MODEL_HELP and "/" in model:  # of a folder the identity has only the end
        found["model"] = model
    return found


def check_named(name: str, named: Collection[str], file: Path | str) -> None:
    """Refuse an encoder from outside that only a file names, and nobody has installed."""
    if ":" in name and not ENCODERS.offers(name):
        what = f"{file} was taught with the encoder {name}, which is not part of frugalvae"
        check_trusted(name, named, what, "--encoder", name)


def check_carried(remembered: Remembered, named: Collection[str], file: Path | str) -> None:
    """Refuse to copy the name of an encoder from outside into another file."""
    kept = remembered or {}
    for name in (kept.get("encoder"), (kept.get(GIVEN) or {}).get("name")):
        check_named(name or "", named, file)


def load_encoder(
    remembered: Remembered, choice: Choice, file: Path | str
) -> tuple[Encoder, dict[str, Any]]:
    """The encoder, and what the file is to remember of it."""
    given = choose(remembered, choice, file)
    made = make_encoder(given["name"], **given["settings"])
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
    from frugalvae.encoders.defaults import marks_agree

    found = [key for key in IDENTITY_KEYS if one.get(key) != other.get(key)]
    in_other_formats = "encoder" in found and not {"preprocessing", "views"} & {*found}
    if in_other_formats and marks_agree(one.get("probe"), other.get("probe")):
        return []  # the same network in ONNX and in PyTorch
    return found


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
