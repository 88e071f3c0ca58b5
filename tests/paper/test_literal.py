"""The paper's memories draw the samples that they drew, by its own wording and by ours.

``python -m tests.paper.test_literal`` writes them again, and prints a digest of every bit, which is
for comparing two versions on one machine: processors round differently, and training carries that
on.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="these memories need PyTorch")

from frugalvae.maths.arrays import Array
from frugalvae.parts import make_memory
from tests.conftest import SMALL, blobs

FIXTURES = Path(__file__).parents[1] / "fixtures"
LITERAL = ("vae-fo-literal", "vae-fod-literal", "vae-fodce-literal", "vae-ceo-literal")
SETTINGS = [
    *(("vae-fo", {"decoder": decoder}) for decoder in ("null-space", "free", "frozen")),
    *(("vae-fo", {"prior": prior}) for prior in ("fpi-literal", "fpi-pairs", "normal", "uniform")),
    *(("vae-fo", {"inputs": inputs}) for inputs in ("prior", "posterior-mean", "batch-mean")),
    *((name, {}) for name in ("vae-fod", "vae-fodce", "vae-ceo", "vae-cgil")),
    *((name, {"classwise": False}) for name in ("vae-fo", "vae-ceo", "vae-cgil")),
    ("vae-fo", {"inputs": "prior", "max_proportion": 0.02}),
]
CASES = {
    "literal": {name: (name, {}) for name in LITERAL},
    "departures": {f"{name} {json.dumps(given)}": (name, given) for name, given in SETTINGS},
}


def samples(name: str, settings: dict[str, Any]) -> Array:
    """Of four classes, taught in two tasks: of shape (classes, samples, dimension)."""
    memory = make_memory(name, **{**SMALL, "max_steps": 10, **settings})
    for classes in ([2, 0], [1, 3]):
        memory.learn(blobs(classes), np.random.default_rng(len(classes) + classes[0]))
    return np.stack([memory.sample(label, 2, np.random.default_rng(label)) for label in range(4)])


@pytest.mark.parametrize(
    ("file", "case"), [(file, case) for file, cases in CASES.items() for case in cases]
)
def test_a_memory_draws_what_it_drew(file: str, case: str) -> None:
    drew = np.array(json.loads((FIXTURES / f"{file}.json").read_text("utf-8"))[case])
    drawn = samples(*CASES[file][case])
    np.testing.assert_allclose(drawn, drew, rtol=0, atol=1e-3 * drew.std())


if __name__ == "__main__":
    for file, cases in CASES.items():
        drawn = {case: samples(*made) for case, made in cases.items()}
        for case, found in drawn.items():
            print(hashlib.sha256(found.tobytes()).hexdigest()[:16], found.dtype, case)
        lists = {case: found.tolist() for case, found in drawn.items()}
        (FIXTURES / f"{file}.json").write_text(json.dumps(lists) + "\n")
