"""From an encoder's identity, as files keep it, back to the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from frugalvae.encoders import make_frozen
from frugalvae.errors import InputError

if TYPE_CHECKING:
    from frugalvae.encoders.base import Encoder

#: What features depend on; a model's name may differ where its folder was moved.
DECISIVE = ("encoder", "preprocessing", "weights")


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In what two identities differ so that their features do not belong together.

    >>> here = {"encoder": "clip", "model": "here", "weights": "12"}
    >>> differences(here, here | {"model": "there"})
    []
    >>> differences(here, here | {"weights": "34"})
    ['weights (12 and 34)']
    """
    return [
        f"{name} ({one.get(name)} and {other.get(name)})"
        for name in DECISIVE
        if one.get(name) != other.get(name)
    ]


def in_words(identity: Mapping[str, Any] | None) -> str:
    """An encoder as people call it.

    >>> in_words({"encoder": "efficientnet", "model": "efficientnet-lite0", "weights": "12"})
    'efficientnet-lite0 (weights 12)'
    """
    if identity is None:
        return "not known"
    name = identity.get("model") or identity.get("encoder") or "without a name"
    weights = identity.get("weights")
    return f"{name} (weights {weights})" if weights else str(name)


def make_identified(identity: Mapping[str, Any], model: str | None = None) -> Encoder:
    """The encoder that an identity is of.

    Parameters
    ----------
    identity
        As an encoder gave it, and a feature file or a classifier keeps it.
    model
        Where its CLIP is, if that is not a name on the Hugging Face hub.
    """
    name = identity.get("encoder")
    if not isinstance(name, str):
        raise InputError(
            f"the encoder is told as {dict(identity)!r}, without 'encoder' as its name; "
            "encode the images with the encoder that it learned from, and give the feature file"
        )
    made = make_frozen(name, **_settings(name, identity, model))
    different = differences(identity, made.identity)
    if different:
        raise InputError(
            f"the encoder {in_words(made.identity)} is not the one that the classifier learned "
            f"from, {in_words(identity)}: they differ in {', '.join(different)}"
            + ("; give --model with the right one" if name == "clip" else "")
        )
    return made


def _settings(name: str, identity: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    if name == "clip":
        return {"model": model or _on_the_hub(str(identity.get("model")))}
    if model is not None:
        raise InputError(f"--model {model}: {name} is one model; leave --model out")
    prepared = identity.get("preprocessing")
    crop = prepared.get("crop") if isinstance(prepared, Mapping) else None
    return {"size": crop[0]} if name == "efficientnet" and crop else {}


def _on_the_hub(model: str) -> str:
    """A model's name, if it can be found by that: of a folder only the last part is told."""
    if "/" not in model:
        raise InputError(
            f"the classifier learned from the CLIP {model!r}, which was a folder; give --model "
            "with the path of that folder"
        )
    return model
