"""A classifier that only answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_answering(path: Path) -> Any:
    """The classifier in a file."""
    from frugalvae.tool.store import Store

    return Store(path).load()
