"""The classes that a file may name: ours, installed plugins, and modules that the caller trusts.

Nothing else is imported because a file names it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib import import_module

from frugalvae.errors import InputError, MemoryFileError, UntrustedModuleError
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES
from frugalvae.plugins import import_outside

#: What our memories and heads are made of, and where it is defined.
HELPERS = {
    "Decoder": "frugalvae.memories.vae.decoder",
    "LayerState": "frugalvae.memories.vae.records",
    "PriorState": "frugalvae.memories.vae.records",
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


def is_ours(kind: type) -> bool:
    """Whether a class is one that every installation knows by its name alone."""
    places = {**HELPERS, **MEMORIES.modules, **HEADS.modules}
    registered = places.get(kind.__name__) == kind.__module__
    return registered and kind.__module__.startswith("frugalvae.")


def name_of(kind: type) -> str:
    """What a class is called in a file: its name, and where it is defined if it is not ours.

    >>> from fractions import Fraction
    >>> name_of(Fraction)
    'fractions:Fraction'
    """
    if is_ours(kind):
        return kind.__name__
    module, name = kind.__module__, kind.__qualname__
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not kind:
        raise InputError(
            f"{module}.{name} cannot be saved: a file names a class by its module, and this one "
            "cannot be imported from there; define it at the top of a module of its own"
        )
    return f"{module}:{name}"


def class_named(name: str, trust: Collection[str] = ()) -> type:
    """The class that a file names, imported now: some need PyTorch.

    >>> class_named("FactorMemory")
    <class 'frugalvae.memories.factors.FactorMemory'>
    >>> class_named("os:system")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UntrustedModuleError: it holds a 'system' of the module 'os', ...
    """
    if ":" in name:
        module, _, attribute = name.partition(":")
        return _class_from_outside(module, attribute, trust)
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


def _class_from_outside(module: str, name: str, trust: Collection[str]) -> type:
    """A class of a module that is trusted, inside a trusted package, or installed as a plugin."""
    trusted = any(f"{module}.".startswith(f"{known}.") for known in trust)
    if not trusted and not any(parts.offers(f"{module}:{name}") for parts in (MEMORIES, HEADS)):
        raise UntrustedModuleError(
            f"it holds a {name!r} of the module {module!r}, which is not part of frugalvae. "
            "Importing a module runs its code: if you know it, load the file with "
            f"FrugalClassifier.load(path, trust=[{module!r}]), or give --trust {module}"
        )
    try:
        kind = getattr(import_outside(module, f"the file's {name}"), name)
    except (ImportError, AttributeError, InputError) as error:
        raise MemoryFileError(
            f"it holds a {name!r} of the module {module!r}, which cannot be imported here "
            f"({error}); put the module where Python finds it"
        ) from error
    if not isinstance(kind, type):
        raise MemoryFileError(f"it holds a {name!r} of the module {module!r}, which is no class")
    return kind


def is_learned(attribute: str) -> bool:
    """Whether an attribute of that name is written, and may be read.

    >>> [is_learned(name) for name in ("means_", "means", "_rule", "__class__")]
    [True, False, False, False]
    """
    return attribute.isidentifier() and attribute.endswith("_") and not attribute.startswith("_")
