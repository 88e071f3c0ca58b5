"""The classes that a file may speak of. Nothing else is ever made from a file."""

from __future__ import annotations

from importlib import import_module

from frugalvae.errors import InputError, MemoryFileError
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES

#: What memories and heads are made of, and where it is defined. A new one has to be added here.
HELPERS = {
    "Decoder": "frugalvae.memories.vae.decoder",
    "LayerState": "frugalvae.memories.vae.saturation",
    "PriorState": "frugalvae.memories.vae.placement",
    "Mixture": "frugalvae.memories.mixture",
    "MLP": "frugalvae.maths.networks",
    "ClasswiseNormaliser": "frugalvae.memories.vae.normalise",
    "GlobalNormaliser": "frugalvae.memories.vae.normalise",
    "WhitenedNormaliser": "frugalvae.memories.vae.whitened",
    "LayerInputs": "frugalvae.maths.nullspace",
    "FixedPointPrior": "frugalvae.maths.priors",
    "NormalPrior": "frugalvae.maths.priors",
    "SinglePrior": "frugalvae.maths.priors",
    "UniformPrior": "frugalvae.maths.priors",
}


def name_of(kind: type) -> str:
    """What a class is called in a file."""
    places = {**HELPERS, **MEMORIES.modules, **HEADS.modules}
    if places.get(kind.__name__) != kind.__module__:
        raise InputError(
            f"{kind.__module__}.{kind.__qualname__} cannot be saved: a file holds only numbers, "
            "names and the package's own memories, heads and priors; use one of those, "
            "or pickle the classifier"
        )
    return kind.__name__


def class_named(name: str) -> type:
    """The class of that name, imported now: some need PyTorch.

    >>> class_named("FactorMemory")
    <class 'frugalvae.memories.factors.FactorMemory'>
    """
    for registry in (MEMORIES, HEADS):
        if name in registry.modules:
            part: type = registry.part_of_class(name)
            return part
    if name not in HELPERS:
        raise MemoryFileError(
            f"it holds a {name!r}, which this version does not know; "
            "load it with the version that wrote it, or a newer one"
        )
    kind: type = getattr(import_module(HELPERS[name]), name)
    return kind


def is_learned(attribute: str) -> bool:
    """Whether an attribute of that name is written, and may be read.

    >>> [is_learned(name) for name in ("means_", "means", "_rule", "__class__")]
    [True, False, False, False]
    """
    return attribute.isidentifier() and attribute.endswith("_") and not attribute.startswith("_")
