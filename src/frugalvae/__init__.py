"""Class-incremental learning on frozen encoders with one small generative memory.

>>> from frugalvae import FrugalClassifier
>>> FrugalClassifier().memory
'moments'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frugalvae.classifier import FrugalClassifier
    from frugalvae.heads import make_head
    from frugalvae.memories import make_memory

__version__ = "0.1.0"
__all__ = ["FrugalClassifier", "__version__", "make_head", "make_memory"]

_MODULES = {
    "FrugalClassifier": "frugalvae.classifier",
    "make_head": "frugalvae.heads",
    "make_memory": "frugalvae.memories",
}


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
