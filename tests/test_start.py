"""What a photograph must not wait for: heavy packages on the way to its name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from frugalvae.classifier import FrugalClassifier
from frugalvae.maths.arrays import BLOCK, Array
from frugalvae.parts import make_memory

HEAVY = (
    "torch",
    "onnx",
    "sklearn",
    "scipy",
    "matplotlib",
    "ray",
    "transformers",
    "jinja2",
    "pandas",
)

SCRIPT = """
import json, sys
from frugalvae.cli.main import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
    imported = sorted({name.split(".")[0] for name in sys.modules})
    print("imported:", words[0], *imported)
"""


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    for name, colour in (("red", (200, 30, 30)), ("blue", (20, 40, 190))):
        (folder / name).mkdir()
        for number in range(3):
            shade = tuple(value + 15 * number for value in colour)
            Image.new("RGB", (90 + number, 70), shade).save(folder / name / f"{number}.jpg")
    return folder


def imported(*commands: Sequence[object]) -> list[tuple[str, set[str]]]:
    """Each verb, and the packages imported by then, in a process of its own for all commands."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("imported:")]
    assert len(told) == len(commands)
    return [(verb, set(packages)) for verb, *packages in told]


def test_no_heavy_package_is_imported_between_a_photograph_and_its_name(
    photographs: Path, tmp_path: Path
) -> None:
    file, one = tmp_path / "colours.frugal", photographs / "red" / "0.jpg"
    more = photographs / "blue"
    commands = [
        ("learn", file, photographs),
        ("status", file),
        ("history", file),
        ("predict", file, one),
        ("predict", file, one, "--json", "--top", "2", "--unknown"),
        ("predict", file, photographs, "--csv"),
        ("learn", file, more, "--class", "blue"),
        ("rename", file, "blue", "navy"),
        ("merge", tmp_path / "all.frugal", file),
        ("forget", file, "navy"),
        ("undo", file),
    ]
    for verb, packages in imported(*commands):
        heavy = packages & set(HEAVY)
        assert not heavy, f"{verb} imports {', '.join(sorted(heavy))}"


#: Modules of ours that teaching, folders or other questions need, and the name of one photograph
#: does not; and what they bring along.
ELSEWHERE = {
    *("numpy.random", "tarfile", "zipfile", "pickletools", "tempfile", "secrets", "difflib"),
    *("frugalvae.encoders.conversion", "frugalvae.parts.names"),
    *("frugalvae.images.classes", "frugalvae.images.feature_file"),
    *("frugalvae.moments.held_out", "frugalvae.classifier"),
}

COLD = """
import collections, json, sys
import numpy, onnxruntime, PIL.Image, PIL.JpegImagePlugin  # the least that any program needs
before = set(sys.modules)
opened = collections.Counter()
sys.addaudithook(lambda event, given: opened.update([str(given[0])] if event == "open" else []))
from frugalvae.cli.main import main
from frugalvae.moments.rule import SharedCovariance
rules, of = [], SharedCovariance.of.__func__
SharedCovariance.of = classmethod(lambda *given: rules.append(given) or of(*given))
assert main(["predict", *sys.argv[1:]]) == 0
modules = sorted(set(sys.modules) - before)
read = [opened[path] for path in sys.argv[1:]]
print(json.dumps({"modules": modules, "read": read, "rules": len(rules)}))
"""


def test_one_photograph_needs_one_rule_each_file_once_and_no_module_of_other_verbs(
    photographs: Path, tmp_path: Path
) -> None:
    """What a cold ``predict`` takes, counted; ``make bench-start`` has the seconds."""
    file, one = tmp_path / "colours.frugal", photographs / "red" / "0.jpg"
    imported(["learn", file, photographs])
    script = [sys.executable, "-c", COLD, str(file), str(one)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout.splitlines()[-1])
    assert not ELSEWHERE & set(counted["modules"])
    ours = [name for name in counted["modules"] if name.startswith("frugalvae")]
    assert len(ours) <= 64, ours
    assert counted["read"] == [1, 1]
    assert counted["rules"] == 1


def test_a_file_of_real_size_is_answered_by_small_factorisations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One covariance, by blocks: none is decomposed whole, inverted whole, or twice."""
    rng, dim, sizes = np.random.default_rng(0), 300, list[int]()
    path, labels = tmp_path / "many.frugal", np.arange(800) % 8
    x = rng.normal(size=(800, dim)) + 3 * rng.normal(size=(8, dim))[labels]
    classifier = FrugalClassifier(make_memory("moments", budget="200kB"))
    for lesson in (labels < 4, labels >= 4):
        classifier.partial_fit(x[lesson], labels[lesson])
    classifier.save(path)
    assert classifier.model_.memory.sums_.scatter.shape == (dim, dim)

    def counting(name: str) -> None:
        whole = getattr(np.linalg, name)

        def counted(matrix: Array, *rest: Any) -> Any:
            sizes.extend([matrix.shape[-1]] * (name == "cholesky" or matrix.shape[-1] > BLOCK))
            return whole(matrix, *rest)

        monkeypatch.setattr(np.linalg, name, counted)

    for name in ("cholesky", "inv", "eigh", "solve", "svd", "qr"):
        counting(name)
    FrugalClassifier.load(path).predict_proba(x[:1])
    assert sorted(sizes) == [dim % BLOCK, BLOCK, BLOCK]


def test_importing_the_package_imports_next_to_nothing() -> None:
    script = "import frugalvae, sys; print(*(name for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "onnxruntime", "PIL", *HEAVY} & set(done.stdout.split())


def test_the_classifier_in_python_needs_no_pytorch(photographs: Path, tmp_path: Path) -> None:
    script = """
import sys
from frugalvae import FrugalClassifier
classifier = FrugalClassifier().partial_fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
classifier.save(sys.argv[1])
assert FrugalClassifier.load(sys.argv[1]).predict([[0.1, 0.9]]).tolist() == ["a"]
assert "torch" not in sys.modules
"""
    command = [sys.executable, "-c", script, str(tmp_path / "two.frugal")]
    subprocess.run(command, check=True)


def test_figures_of_an_evaluation_need_no_extra(photographs: Path, tmp_path: Path) -> None:
    """Where plots are not installed, the page is missing and said to be, and nothing else."""
    file, page = tmp_path / "colours.frugal", tmp_path / "page.html"
    imported(["learn", file, photographs])
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from frugalvae.cli.main import main; sys.exit(main())"
    )
    words = [sys.executable, "-c", script, "evaluate", file, photographs]
    for asked, code in ([], 0), (["-o", page], 2):
        done = subprocess.run(
            [*map(str, [*words, *asked])],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == code
        assert "accuracy" in done.stdout
        told = done.stderr if code else done.stdout
        assert "the page of 'evaluate' needs 'matplotlib'" in told
        assert "pip install '.[report]'" in told
    assert not list(tmp_path.glob("*.html"))
