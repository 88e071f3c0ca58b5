"""Convert a file of format 2 to format 3: ``python -m lab.benchmarks.convert OLD NEW``.

FrugalVAE reads files of its own format alone. This script stands by itself: it knows how both
formats are written, makes no part of what it reads, and imports nothing that a file names.
Every array stays as it is, so that predictions are the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from frugalvae.labels import as_label

BLANK = "0" * 64
SIX_BYTES = 6  # of a digest, in files that cannot recognise their photographs any more


def convert(old: Path, new: Path) -> list[str]:
    """Write the file as one of format 3; what could not be kept, in sentences."""
    content = old.read_bytes()
    size = int.from_bytes(content[:8], "little")
    document = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["frugalvae"])
    if document["format"] != 2:
        raise SystemExit(f"{old} has format {document['format']}; this script converts format 2")
    if (
        hashlib.sha256(content.replace(*digests(document["sha256"], BLANK), 1)).hexdigest()
        != (document["sha256"])
    ):
        raise SystemExit(f"{old} is damaged: its checksum does not fit")
    arrays = safetensors.numpy.load(content)
    if any(name.endswith((".arrays.evidence", ".arrays.taken")) for name in arrays):
        raise SystemExit(
            f"{old} holds evidence that later versions of format 2 replaced; load and save it with "
            "the last version that reads it, and convert the outcome"
        )
    lost = without_short_digests(document, arrays)
    for role in ("memory", "head"):
        document[role] = converted(document[role])
        document["parameters"][role] = converted(document["parameters"][role])
    labels = document["classes"]
    labels["values"] = [as_label(label) for label in labels["values"]]
    if len(set(labels["values"])) < len(labels["values"]):
        raise SystemExit(f"{old} has two labels that look the same; rename one before")
    if "aliases" in document:
        names = {as_label(name): as_label(y) for name, y in document["aliases"].items()}
        known = set(map(str, labels["values"]))
        document["aliases"] = {name: y for name, y in names.items() if name not in known}
    document |= {"sha256": BLANK, "format": 3}
    written = safetensors.numpy.save(arrays, {"frugalvae": json.dumps(document)})
    digest = hashlib.sha256(written).hexdigest()
    new.write_bytes(written.replace(*digests(BLANK, digest), 1))
    return lost


def converted(value: Any) -> Any:
    """JSON of format 2, with each part as its class, one state and its name."""
    if isinstance(value, list):
        return [converted(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "class" not in value:
        return {key: converted(item) for key, item in value.items()}
    state = value.get("settings", {}) | value.get("learned", {}) | value.get("fields", {})
    if value["class"] == "MomentMemory":
        state = dict(state["settings"]["dict"]) | {
            k: v for k, v in state.items() if k != "settings"
        }
    found = {
        "class": value["class"],
        "state": {name: converted(one) for name, one in state.items()},
    }
    name = "moments" if value["class"] == "MomentMemory" else value.get("name")
    return found if name is None else {**found, "name": name}


def without_short_digests(document: dict[str, Any], arrays: dict[str, Any]) -> list[str]:
    """Remove digests of which only six bytes were kept; a sentence if there were any."""
    short = [name for name in ("digests", "withheld") if name in arrays]
    short = [name for name in short if np.shape(arrays[name])[1] == SIX_BYTES]
    for name in short:
        del document[name], arrays[name]
    return [
        f"its {name} were too short, and are left out: photographs that it was taught would be "
        "counted again"
        for name in short
    ]


def digests(*hexadecimal: str) -> tuple[bytes, ...]:
    """The field of the checksum as it stands in a file: JSON inside a JSON string."""
    return tuple(json.dumps(f'"sha256": "{text}"')[1:-1].encode() for text in hexadecimal)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    for sentence in convert(Path(sys.argv[1]), Path(sys.argv[2])):
        print(sentence)
    print(f"{sys.argv[2]} has format 3")
