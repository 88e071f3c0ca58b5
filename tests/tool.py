"""A classifier's file in a folder of its own, taught small images by an encoder of colours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main
from tests.colours import Colours
from tests.test_images import save

SHADES = {
    "cat": (200, 30, 30),
    "dax": (30, 200, 30),
    "emu": (30, 30, 200),
    "fox": (30, 200, 200),
    "gnu": (200, 200, 30),
}

#: What learns in a moment.
QUICK = ["--memory", "gaussian-diagonal", "--head", "nearest-mean"]


def paint(root: Path, *names: str, count: int = 6) -> Path:
    """A folder of classes, each of its own colour."""
    for name in names:
        red, green, blue = SHADES[name]
        for number in range(count):
            save(root / name / f"{number}.png", (red + number, green, blue))
    return root


class Tool:
    """Runs commands in this process, and tells what they printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.file = folder / "birds.frugal"
        self.out = self.err = ""

    def __call__(self, verb: str, *words: object, code: int = 0) -> str:
        """What a command prints, after it has ended with that code."""
        self.capsys.readouterr()
        ended = main([verb, str(self.file), *map(str, words)])
        self.out, self.err = self.capsys.readouterr()
        assert ended == code, self.out + self.err
        return self.out if code == 0 else self.err

    def learn(self, *words: object, code: int = 0) -> str:
        """Learn; a new file is made with parts that are quick."""
        return self("learn", *words, *([] if self.file.exists() else QUICK), code=code)

    def json(self, verb: str, *words: object, code: int = 0) -> Any:
        """The JSON that a command prints."""
        self(verb, *words, "--json", code=code)
        return json.loads(self.out)

    @property
    def classes(self) -> list[Any]:
        """What the file knows."""
        return FrugalClassifier.load(self.file).model_.classes.tolist()

    @property
    def beside(self) -> list[str]:
        """All files in the folder that have the file's name in theirs, hidden ones too."""
        return sorted(path.name for path in self.folder.glob("*birds.frugal*"))


class Encoders:
    """Stands for ``make_encoder``: gives encoders of colours, and counts their work."""

    def __init__(self) -> None:
        self.made: list[Colours] = []
        self.weights = "0"
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, name: str, **settings: Any) -> Colours:
        self.asked.append((name, settings))
        self.made.append(Colours(self.weights))
        return self.made[-1]

    @property
    def images(self) -> int:
        """How many images were encoded."""
        return sum(sum(encoder.batches) for encoder in self.made)
