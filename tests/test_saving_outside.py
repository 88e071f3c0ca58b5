"""Saving parts that are not ours: they load where their module is trusted, and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main
from frugalvae.errors import InputError, MemoryFileError, UntrustedError
from tests.outside import Forgetful, MeanMemory, NearestHead
from tests.test_saving import blobs, forged, put

ROOT = Path(__file__).parent.parent
TRUST = ["tests.outside"]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[FrugalClassifier, Path]:
    classifier = FrugalClassifier(MeanMemory(spread=0.5), NearestHead())
    for numbers in ([0, 1], [2]):
        task = blobs(numbers)
        classifier.partial_fit(task.features, task.labels)
    classifier.save(tmp_path / "mine.frugal")
    return classifier, tmp_path / "mine.frugal"


def test_parts_from_outside_come_back_and_learn_on(saved: tuple[FrugalClassifier, Path]) -> None:
    classifier, path = saved
    loaded: Any = FrugalClassifier.load(path, trust=TRUST)
    task = blobs([0, 1, 2], seed=3)
    assert np.array_equal(
        loaded.predict_proba(task.features), classifier.predict_proba(task.features)
    )
    assert np.array_equal(loaded.sample(2, 4), classifier.sample(2, 4))
    assert (loaded.memory_.spread, loaded.memory_.last_) == (0.5, 2)
    assert loaded.memory.classes == []  # what it was made with knows nothing yet
    more = blobs([5])
    for one in (classifier, loaded):
        one.partial_fit(more.features, more.labels)
    assert np.array_equal(
        loaded.predict_proba(task.features), classifier.predict_proba(task.features)
    )


def test_a_part_that_does_not_keep_its_settings_is_told_how_to_be_saved(tmp_path: Path) -> None:
    task = blobs([0, 1])
    classifier = FrugalClassifier(Forgetful(), NearestHead()).fit(task.features, task.labels)
    with pytest.raises(InputError, match=r"Forgetful cannot be saved: .* state\(\) and from_state"):
        classifier.save(tmp_path / "it.frugal")
    assert not list(tmp_path.iterdir())


def test_what_is_installed_as_a_plugin_needs_no_trust(
    saved: tuple[FrugalClassifier, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "site" / "mine-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[frugalvae.memories]\nmine = tests.outside:MeanMemory\n"
        "[frugalvae.heads]\nmine = tests.outside:NearestHead\n"
    )
    with pytest.raises(ValueError, match="tests.outside"):
        FrugalClassifier.load(saved[1])
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert FrugalClassifier.load(saved[1]).classes_.tolist() == [0, 1, 2]


def test_a_part_that_is_named_only_is_not_imported_either(
    saved: tuple[FrugalClassifier, Path],
) -> None:
    for name, trusted in (("tests.outside:MeanMemory", True), ("os:system", False)):
        saved[1].write_bytes(forged(saved[1].read_bytes(), put("parameters", "memory", name)))
        if trusted:
            assert FrugalClassifier.load(saved[1], trust=TRUST).memory == name
        else:
            with pytest.raises(UntrustedError, match="'system' of the module 'os'"):
                FrugalClassifier.load(saved[1], trust=TRUST)


@pytest.mark.parametrize("trust", [(), ["test"], ["tests.outside.MeanMemory"], "tests.test_fuzz"])
def test_a_module_that_is_not_trusted_is_named_and_how_to_trust_it(
    saved: tuple[FrugalClassifier, Path], trust: Any
) -> None:
    message = (
        r"'MeanMemory' of the module 'tests.outside', .*"
        r"give --trust tests.outside, or in Python trust=\[.*'tests.outside'\]$"
    )
    with pytest.raises(UntrustedError, match=message):
        FrugalClassifier.load(saved[1], trust=trust)


def test_what_is_not_trusted_is_never_imported(tmp_path: Path, saved: Any) -> None:
    """In a process of its own, where nothing else has imported it."""
    script = (
        "import sys; from frugalvae import FrugalClassifier\n"
        "from frugalvae.cli.main import main\n"
        "for verb in ('status', 'history', 'predict'):\n"
        "    main([verb, sys.argv[1], *([sys.argv[1]] if verb == 'predict' else [])])\n"
        "try: FrugalClassifier.load(sys.argv[1])\n"
        "except ValueError: pass\n"
        "print([name for name in sys.modules if name.startswith('tests')])\n"
        "print(FrugalClassifier.load(sys.argv[1], trust=['tests.outside']).classes_.tolist())"
    )
    command = [sys.executable, "-c", script, str(saved[1])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "[0, 1, 2]"]


def test_status_and_history_need_no_trust_and_predict_says_what_to_do(
    saved: tuple[FrugalClassifier, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["status", str(saved[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["memory"] == "tests.outside:MeanMemory"
    assert main(["history", str(saved[1])]) == 0
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 8), np.float32))
    assert main(["predict", str(saved[1]), str(tmp_path / "x.npz")]) == 2
    assert "trust=['tests.outside']" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.outside:function", "which is no class"),
        ("tests.outside:Absent", "cannot be imported here"),
        ("tests.absent:MeanMemory", "cannot be imported here .*put the module where Python finds"),
        ("fractions:Fraction", "memory 'fractions:Fraction' has no learn, sample, update, "),
    ],
)
def test_a_trusted_module_without_the_class(
    saved: tuple[FrugalClassifier, Path], name: str, message: str
) -> None:
    saved[1].write_bytes(forged(saved[1].read_bytes(), put("memory", "class", name)))
    with pytest.raises(MemoryFileError, match=message):
        FrugalClassifier.load(saved[1], trust=[*TRUST, "tests.absent", "fractions"])


def test_a_part_from_outside_may_start_with_another_kind_of_value(tmp_path: Path) -> None:
    """``scatter_ = 0`` that becomes an array, as people write it."""
    task = blobs([0, 1])
    memory = MeanMemory()
    memory.scatter_ = 0  # type: ignore[attr-defined]
    classifier = FrugalClassifier(memory, NearestHead()).fit(task.features, task.labels)
    classifier.memory_.scatter_ = np.eye(3)  # type: ignore[attr-defined]
    classifier.save(tmp_path / "it.frugal")
    loaded: Any = FrugalClassifier.load(tmp_path / "it.frugal", trust=TRUST)
    assert np.array_equal(loaded.memory_.scatter_, np.eye(3))
