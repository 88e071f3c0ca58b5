"""The classes that a file may speak of. Nothing else is ever made from a file."""

from __future__ import annotations

import functools

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES
from frugalvae.memories.decoder import Decoder
from frugalvae.memories.history import LayerState, PriorState
from frugalvae.memories.mixture import Mixture
from frugalvae.networks import MLP
from frugalvae.normalise import ClasswiseNormaliser, GlobalNormaliser, WhitenedNormaliser
from frugalvae.nullspace import LayerInputs
from frugalvae.priors import FixedPointPrior, NormalPrior, SinglePrior, UniformPrior
from frugalvae.registry import Registry

#: What memories and heads are made of. A new one has to be added here.
HELPERS = (
    Decoder,
    LayerState,
    PriorState,
    Mixture,
    MLP,
    ClasswiseNormaliser,
    GlobalNormaliser,
    WhitenedNormaliser,
    LayerInputs,
    FixedPointPrior,
    NormalPrior,
    SinglePrior,
    UniformPrior,
)


def parts_of(registry: Registry) -> tuple[type, ...]:
    """All classes that have a name in a registry."""
    return tuple(registry.part(name) for name in registry)


@functools.cache
def known_classes() -> dict[str, type]:
    """Every class that may be in a file, by name.

    >>> known_classes()["VAEMemory"]
    <class 'frugalvae.memories.vae.VAEMemory'>
    """
    every = (*parts_of(MEMORIES), *parts_of(HEADS), *HELPERS)
    return {kind.__name__: kind for kind in every}


def name_of(kind: type) -> str:
    """What a class is called in a file."""
    if known_classes().get(kind.__name__) is not kind:
        raise InputError(
            f"{kind.__module__}.{kind.__qualname__} cannot be saved: a file holds only numbers, "
            "names and the package's own memories, heads and priors; use one of those, "
            "or pickle the classifier"
        )
    return kind.__name__


def class_named(name: str) -> type:
    """The class of that name."""
    if name not in known_classes():
        raise MemoryFileError(
            f"it holds a {name!r}, which this version does not know; "
            "load it with the version that wrote it, or a newer one"
        )
    return known_classes()[name]


def is_learned(attribute: str) -> bool:
    """Whether an attribute of that name is written, and may be read.

    >>> [is_learned(name) for name in ("means_", "means", "_rule", "__class__")]
    [True, False, False, False]
    """
    return attribute.isidentifier() and attribute.endswith("_") and not attribute.startswith("_")
