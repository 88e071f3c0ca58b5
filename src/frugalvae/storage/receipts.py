"""Receipts: what was removed from a file, what remains, and its checksums before and after."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from frugalvae.model.model import Model
    from frugalvae.storage.store import Store

QUANTILES = "the quantiles of familiarity are of all classes together, and still count its samples"


def checksum_of(path: Path) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def state(store: Store) -> dict[str, Any]:
    """What a file is: its size and its checksum."""
    return {"bytes": store.path.stat().st_size, "sha256": checksum_of(store.path)}


def receipt(
    model: Model, label: Any, remains: list[str], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    """What was removed, what remains, and when."""
    event = model.history[-1]
    if model.taught_novelty.quantiles and not event["scrub"]:
        remains = [*remains, QUANTILES]
    return {
        "class": label,
        "samples": event["classes"][str(label)],
        "bytes": before["bytes"] - after["bytes"],
        "remains": remains,
        "classes": len(model.classes),
        "before": before,
        "after": after,
        "when": event["when"],
        "scrub": event["scrub"],
    }
