"""Encoders that learn on the first task."""

from __future__ import annotations

from typing import Any

from frugalvae.parts.registry import Registry

#: Every one of them by name.
ENCODERS = Registry(
    "encoder", {"resnet18": ("frugalvae_lab.encoders.resnet18:ResNet18Encoder", {})}
)


def make_encoder(name: str, **settings: Any) -> Any:
    """The encoder of that name, with any setting changed.

    >>> make_encoder("resnet18", epochs=5).epochs
    5
    """
    return ENCODERS.make(name, settings, trust=[name])
