"""What a photograph must not wait for: heavy packages on the way to its name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

HEAVY = ("torch", "sklearn", "scipy", "matplotlib", "ray", "transformers", "jinja2", "pandas")

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
        ("update", file, "blue", more),
        ("rename", file, "blue", "navy"),
        ("merge", tmp_path / "all.frugal", file),
        ("forget", file, "navy"),
        ("undo", file),
    ]
    for verb, packages in imported(*commands):
        heavy = packages & set(HEAVY)
        assert not heavy, f"{verb} imports {', '.join(sorted(heavy))}"


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
