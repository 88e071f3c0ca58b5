"""Encoders: what makes features of images. Each passes :func:`frugalvae.testing.check_encoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugalvae.errors import check_choice, check_number
from frugalvae.parts.registry import Registry

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

__all__ = ["ENCODERS", "MODEL_HELP", "VIEWS", "make_encoder"]


def make_encoder(name: str, **settings: Any) -> Encoder:
    """The pretrained encoder of that name, which the caller chose, with its settings.

    A name that a file gives goes through :func:`frugalvae.encoders.remembered.choose` before.
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
