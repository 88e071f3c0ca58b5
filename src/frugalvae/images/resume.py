"""What is finished of a feature file, beside it, so that a killed command can go on."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from frugalvae.errors import InputError
from frugalvae.files import write_bytes, write_json
from frugalvae.images.listing import Listing
from frugalvae.images.npz import read_arrays
from frugalvae.images.shards import Encoded

OWNER = "parts-of.json"


class Parts:
    """The folder ``FILE.parts``: a file for each shard, and one that says what they are of.

    Parameters
    ----------
    output
        The feature file that is being made.
    of
        What the parts depend on, each as a digest: other images, another encoder or
        another size of batches, and none of them is used.
    """

    def __init__(self, output: Path, of: dict[str, str]) -> None:
        self.folder = output.with_name(f"{output.name}.parts")
        self.of = of

    def open(self) -> list[str]:
        """Get ready; what is there of something else is removed, and its differences returned."""
        before = self._before()
        changed = [name for name in self.of if before and before.get(name) != self.of[name]]
        if changed:
            self.remove()
        self.folder.mkdir(exist_ok=True)
        write_json(self.folder / OWNER, self.of)
        return changed

    def there(self) -> bool:
        """Whether parts are there, be they all but removed."""
        try:
            self._before()
        except InputError:  # it is the folder of someone else
            return False
        return self.folder.is_dir()

    def are_of(self, what: str) -> bool:
        """Whether parts are there and agree in that; or are all but removed."""
        return self.there() and self._before().get(what, self.of[what]) == self.of[what]

    def _before(self) -> dict[str, Any]:
        """What the parts that are there are of; nothing if there are none."""
        if not self.folder.exists():
            return {}
        try:
            before: dict[str, Any] = json.loads((self.folder / OWNER).read_text())
            return before
        except (OSError, ValueError) as error:
            if self.folder.is_dir() and all(p.name.startswith(".") for p in self.folder.iterdir()):
                return {}  # killed before anything was written
            raise InputError(
                f"{self.folder} is in the way: no parts of a feature file are in it; move it, "
                "or choose another output"
            ) from error

    def load(self, number: int) -> Encoded | None:
        """A finished shard; None if it is missing or damaged."""
        try:
            part = read_arrays(self._path(number), ("features", "places", "reasons"))
            reasons = {int(place): why for place, why in json.loads(part["reasons"].item())}
            if any("pip install" in why for why in reasons.values()):
                return None  # what was missing may be installed by now
            return Encoded(part["features"], part["places"], reasons)
        except (InputError, KeyError, ValueError, TypeError, RecursionError):
            return None

    def save(self, number: int, encoded: Encoded) -> None:
        """Write a finished shard: complete, or not at all."""
        buffer = io.BytesIO()
        np.savez(
            buffer,
            features=encoded.features,
            places=encoded.places,
            reasons=np.array(json.dumps(list(encoded.reasons.items()))),
        )
        write_bytes(self._path(number), buffer.getvalue())

    def remove(self) -> None:
        """Remove all of it, last what says whose it is: a kill leaves no riddle."""
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name == OWNER):
            path.unlink()
        self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"


def depends_on(images: Listing, identity: dict[str, Any], shard_size: int) -> dict[str, str]:
    """What features depend on, in words that can be said when it has changed."""
    files = [
        [str(path), *file.stamp] for path, file in zip(images.paths, images.files, strict=True)
    ]
    return {
        "images": digest(files),
        "encoder": digest({key: told for key, told in identity.items() if key != "probe"}),
        "batch size": str(shard_size),
    }


def digest(content: Any) -> str:
    """A short name of some JSON: other content, another name."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
