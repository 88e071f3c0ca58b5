"""Encoders: what makes features of images."""

from __future__ import annotations

from typing import Any

from frugalvae.registry import Registry

#: Every encoder by name.
ENCODERS = Registry("encoder", {"resnet18": ("frugalvae.encoders.resnet18:ResNet18Encoder", {})})


def make_encoder(name: str, **settings: Any) -> Any:
    """The encoder of that name, with any of its settings changed.

    >>> make_encoder("resnet18", epochs=5).epochs
    5
    """
    return ENCODERS.make(name, settings)
