"""Files of format 2 become files of today's format, and answer as they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from frugalvae import FrugalClassifier
from frugalvae.errors import MemoryFileError
from lab.benchmarks.convert import convert, converted

FIXTURES = Path(__file__).parents[2] / "tests/fixtures"


@pytest.mark.parametrize("name", ["moments", "moments-cut", "vae"])
def test_a_file_of_format_2_answers_as_it_did(name: str, tmp_path: Path) -> None:
    old, new = FIXTURES / f"format-2-{name}.frugal", tmp_path / "new.frugal"
    with pytest.raises(MemoryFileError, match=r"python -m lab\.benchmarks\.convert OLD NEW"):
        FrugalClassifier.load(old)
    assert convert(old, new) == []
    loaded, recorded = (
        FrugalClassifier.load(new, device="cpu"),
        json.loads(old.with_suffix(".json").read_text()),
    )
    x = np.array(recorded["x"]) if name == "vae" else load_digits(return_X_y=True)[0][-40:]
    (sure,) = (value for key, value in recorded.items() if key.startswith("probability"))
    assert loaded.predict(x).tolist() == recorded["predictions"]
    np.testing.assert_allclose(loaded.predict_proba(x)[:, 0], sure, atol=1e-6)
    assert list(loaded.history_) == recorded["history"]
    with pytest.raises(SystemExit, match="has format 3; this script converts format 2"):
        convert(new, old)


def test_damage_is_noticed(tmp_path: Path) -> None:
    content = (FIXTURES / "format-2-moments.frugal").read_bytes()
    (tmp_path / "old.frugal").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(SystemExit, match="is damaged"):
        convert(tmp_path / "old.frugal", tmp_path / "new.frugal")
    assert not (tmp_path / "new.frugal").exists()


def test_parts_inside_parts_are_converted_too() -> None:
    inner = {"class": "LayerState", "fields": {"task": 1}}
    part = {"class": "Own", "settings": {"a": 1}, "learned": {"b_": [inner]}, "name": "own"}
    assert converted({"dict": [[3, part]]}) == {
        "dict": [
            [
                3,
                {
                    "class": "Own",
                    "state": {"a": 1, "b_": [{"class": "LayerState", "state": {"task": 1}}]},
                    "name": "own",
                },
            ]
        ]
    }
