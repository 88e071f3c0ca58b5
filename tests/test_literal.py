"""The paper's memories, trained by its own wording, draw the samples that they drew.

``python -m tests.test_literal`` writes them again, and prints a digest of every bit, which is for
comparing two versions on one machine: processors round differently, and training carries that on.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="these memories need PyTorch")

from frugalvae.maths.arrays import Array
from frugalvae.memories import make_memory
from tests.conftest import SMALL, blobs

SAMPLES = Path(__file__).with_name("fixtures") / "literal.json"
NAMES = ("vae-fo-literal", "vae-fod-literal", "vae-fodce-literal", "vae-ceo-literal")


def samples(name: str) -> Array:
    """Of four classes, taught in two tasks: of shape (classes, samples, dimension)."""
    memory = make_memory(name, **{**SMALL, "max_steps": 10})
    for classes in ([2, 0], [1, 3]):
        memory.learn(blobs(classes), np.random.default_rng(len(classes) + classes[0]))
    return np.stack([memory.sample(label, 2, np.random.default_rng(label)) for label in range(4)])


@pytest.mark.parametrize("name", NAMES)
def test_a_literal_memory_draws_what_it_drew(name: str) -> None:
    expected = np.array(json.loads(SAMPLES.read_text("utf-8"))[name])
    np.testing.assert_allclose(samples(name), expected, rtol=0, atol=1e-3 * expected.std())


if __name__ == "__main__":
    drawn = {name: samples(name) for name in NAMES}
    for name, found in drawn.items():
        print(hashlib.sha256(found.tobytes()).hexdigest()[:16], found.dtype, name)
    SAMPLES.write_text(json.dumps({name: found.tolist() for name, found in drawn.items()}) + "\n")
