"""Encoders: what makes features of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugalvae.errors import check_choice, check_number
from frugalvae.parts.registry import Registry

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Encoder

#: Pretrained encoders that stay as they are, by name; ``clip`` is the older one for any.
FROZEN = Registry(
    "frozen encoder",
    {
        "efficientnet": ("frugalvae.encoders.efficientnet:EfficientNetEncoder", {}),
        "onnx": ("frugalvae.encoders.onnx:OnnxEncoder", {}),
        "transformers": ("frugalvae.encoders.transformers:TransformersEncoder", {}),
        "clip": ("frugalvae.encoders.transformers:TransformersEncoder", {}),
    },
    group="frugalvae.encoders",
    attributes=("identity",),
    methods=("prepare", "encode", "text_features", "to"),
    defaults="frugalvae.encoders.defaults.EncoderDefaults",
)

_MODEL = "a folder in the format of transformers, or a name on the Hugging Face hub such as"

#: What ``--model`` has to be, of encoders that are many. The same network may be had by
#: several of them: its features tell.
MANY = {
    "onnx": "an .onnx file, a folder with one, or a name on the Hugging Face hub such as "
    "Xenova/clip-vit-base-patch32",
    "transformers": f"{_MODEL} facebook/dinov2-base",
    "clip": f"{_MODEL} openai/clip-vit-large-patch14",
}

#: How many views of a photograph a frozen encoder may average.
VIEWS = (1, 2, 4)

__all__ = [
    "FROZEN",
    "MANY",
    "VIEWS",
    "check_frozen",
    "make_frozen",
]


def make_frozen(name: str, **settings: Any) -> Encoder:
    """The pretrained encoder of that name, which the caller chose, with its settings.

    A name that a file gives goes through :func:`frugalvae.encoders.remembered.choose` before.
    Every encoder takes ``views``: how many views of a photograph it averages
    (:class:`frugalvae.encoders.views.Views`).

    >>> make_frozen("resnet18")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UnknownNameError: there is no frozen encoder 'resnet18'. Known: ...
    """
    check_frozen(name)
    views = settings.pop("views", 1)
    check_number("views", views, VIEWS[0], VIEWS[-1], whole=True)
    check_choice("views", views, VIEWS)
    made: Encoder = FROZEN.make(name, settings, trust=[name])
    if views == 1:
        return made
    from frugalvae.encoders.views import Views

    return Views(made, views)


def check_frozen(name: str) -> None:
    """Refuse a name that no pretrained encoder has, without importing any."""
    _ = FROZEN[name]  # or say which there are
