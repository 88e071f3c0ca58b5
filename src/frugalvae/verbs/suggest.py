"""Suggest: which unlabelled samples would teach most."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.care.lists import guess
from frugalvae.care.suggestions import Suggested
from frugalvae.care.suggestions import suggest as choose
from frugalvae.digests import DIGEST, NONE, among
from frugalvae.formatting import plural
from frugalvae.images import BATCH_SIZE

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples


@dataclass
class Suggestions:
    """What to label.

    Attributes
    ----------
    samples
        What there was to choose from: samples that were not taught and can be read.
    suggested
        Which of them, and why; rows are those of ``samples``.
    left_out
        What there was not to choose from, a line each.
    """

    samples: Samples
    suggested: Suggested
    left_out: list[str]

    @property
    def notes(self) -> list[str]:
        """What was left out, and how the rest was compared."""
        return [*self.left_out, *self.suggested.notes]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        names, suggestions = self.samples.names, []
        for found in self.suggested.suggestions:
            values = found.to_json()
            suggestions.append({"image": names[values.pop("row")], **values})
        return {
            "images": len(self.samples),
            "suggestions": suggestions,
            "groups": [[names[row] for row in rows] for rows in self.suggested.groups],
            "notes": self.notes,
            "skipped": self.samples.skipped,
        }


def suggest(
    model: Model,
    samples: Samples,
    encoder: Encoder | None = None,
    number: int = 20,
    batch_size: int = BATCH_SIZE,
) -> Suggestions:
    """Choose samples to label, of those that the model was not taught; nothing is learned."""
    taught = np.concatenate([np.empty(0, DIGEST), *model.digests.values()])
    digests = samples.digests()
    fresh = np.flatnonzero(~among(digests, taught) | (digests == NONE))
    known = len(samples) - len(fresh)
    left_out = [f"{plural(known, samples.what)} taught before, and left out"] if known else []
    samples = samples.at(fresh)
    encoded = samples.encode(encoder, batch_size)
    left_out += [
        f"{samples.names[place]} cannot be read: {why}" for place, why in encoded.reasons.items()
    ]
    found = choose(model, encoded.features, number) if len(encoded.features) else Suggested()
    return Suggestions(samples.at(encoded.places), found, left_out)


def copy_suggestions(folder: Path, result: Suggestions) -> None:
    """Copy suggestions to a folder for each probable class, and groups to folders of their own."""
    read, suggested = result.samples.reader, result.suggested
    assert read is not None
    grouped = {row for rows in suggested.groups for row in rows}
    places = [
        (guess(found.label if found.known else "unknown"), found.row)
        for found in suggested.suggestions
        if found.row not in grouped
    ]
    for number, rows in enumerate(suggested.groups, start=1):
        places += [(guess(f"new class {number}"), row) for row in rows]
    folder.mkdir(exist_ok=True)
    for name, row in places:
        inside = folder / name
        inside.mkdir(exist_ok=True)
        target = inside / Path(result.samples.names[row]).name
        if target.exists():  # another folder has an image of this name
            target = inside / f"{row} {target.name}"
        target.write_bytes(read(row))
