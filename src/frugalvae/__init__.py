"""Class-incremental learning on frozen encoders with one small generative memory.

>>> from frugalvae import FrugalClassifier
>>> FrugalClassifier().memory
'moments'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frugalvae.classifier import FrugalClassifier, check, suggest
    from frugalvae.encoders import make_encoder
    from frugalvae.parts import make_head, make_memory
    from frugalvae.photos import PhotoClassifier

__version__ = "0.1.0"
__all__ = [
    "FrugalClassifier",
    "PhotoClassifier",
    "__version__",
    "check",
    "make_encoder",
    "make_head",
    "make_memory",
    "suggest",
]

_PLACES = {
    "FrugalClassifier": "frugalvae.classifier",
    "PhotoClassifier": "frugalvae.photos",
    "check": "frugalvae.classifier",
    "make_encoder": "frugalvae.encoders:make_encoder",
    "make_head": "frugalvae.parts",
    "make_memory": "frugalvae.parts",
    "suggest": "frugalvae.classifier",
}


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute or name)
