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


@dataclass(kw_only=True)
class Suggestions(Suggested):
    """What to label, and what there was to choose from; rows are those of ``samples``.

    ``samples`` were not taught and can be read; ``left_out`` has a line about all others.
    """

    samples: Samples
    left_out: list[str]

    @property
    def all_notes(self) -> list[str]:
        """What was left out, and how the rest was compared."""
        return [*self.left_out, *self.notes]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        names, suggestions = self.samples.names, []
        for found in self.suggestions:
            values = found.to_json()
            suggestions.append({"image": names[values.pop("row")], **values})
        return {
            "images": len(self.samples),
            "suggestions": suggestions,
            "groups": [[names[row] for row in rows] for rows in self.groups],
            "notes": self.all_notes,
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
    return Suggestions(**vars(found), samples=samples.at(encoded.places), left_out=left_out)


def copy_suggestions(folder: Path, result: Suggestions) -> None:
    """Copy suggestions to a folder for each probable class, and groups to folders of their own."""
    read = result.samples.reader
    assert read is not None
    grouped = {row for rows in result.groups for row in rows}
    places = [
        (guess(found.label if found.known else "unknown"), found.row)
        for found in result.suggestions
        if found.row not in grouped
    ]
    for number, rows in enumerate(result.groups, start=1):
        places += [(guess(f"new class {number}"), row) for row in rows]
    folder.mkdir(exist_ok=True)
    for name, row in places:
        inside = folder / name
        inside.mkdir(exist_ok=True)
        target = inside / Path(result.samples.names[row]).name
        if target.exists():  # another folder has an image of this name
            target = inside / f"{row} {target.name}"
        target.write_bytes(read(row))
