"""What every verb prints is what ``transcripts.txt`` says; the server offers ``openapi.json``.

Words are compared as they stand; figures to a thousandth, since processors round differently.
After a change that is meant: ``python -m tests.test_transcripts`` writes both files again.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from frugalvae import __version__
from frugalvae.cli.main import main
from tests.colours import Colours
from tests.test_images import zipped
from tests.tool import SHADES

TRANSCRIPTS = Path(__file__).with_name("transcripts.txt")
OPENAPI = TRANSCRIPTS.with_name("openapi.json")

#: The life of a classifier: each verb as text and, where it offers that, as JSON; then mistakes.
COMMANDS = """
check photos
check photos --json
learn birds.frugal photos --dry-run
learn birds.frugal photos
learn birds.frugal photos --json
learn birds.frugal more --json
check birds.frugal third
status birds.frugal
status birds.frugal --all
status birds.frugal --json
predict birds.frugal test
predict birds.frugal test --top 2 --unknown
predict birds.frugal test --json
predict birds.frugal test --jsonl
predict birds.frugal test --csv
predict birds.frugal test --sets 0.1
predict birds.frugal photos/cat/0.png missing.png
explain birds.frugal photos/cat/0.png
explain birds.frugal photos/cat/0.png --json
evaluate birds.frugal test -o evaluation.html
evaluate birds.frugal test --json
suggest birds.frugal mixed -n 2
suggest birds.frugal mixed -n 2 --json
encode photos -o photos.npz
encode photos -o photos.npz --json
learn birds.frugal photos.npz
learn birds.frugal third/emu --class emu
learn birds.frugal third/emu --class emu --json
sample birds.frugal emu -n 3 -o drawn.npz
rename birds.frugal emu Emu
unlearn birds.frugal Emu third/emu/0.png
unlearn birds.frugal Emu third/emu/1.png --json
undo birds.frugal
learn other.frugal apart.zip
merge birds.frugal other.frugal
merge birds.frugal other.frugal --twice --json
undo birds.frugal
merge-classes birds.frugal fox gnu
merge-classes birds.frugal fox Emu --json
forget birds.frugal fox
undo birds.frugal
forget birds.frugal fox --json
history birds.frugal
history birds.frugal --json
predict missing.frugal test
predict birds.frugal nothing
learn birds.frugal nothing
learn birds.frugal photos/cat
learn birds.frugal photos --memory nothing
rename birds.frugal wolf dog
rename birds.frugal cat dax
forget birds.frugal wolf
merge birds.frugal nothing.frugal
merge-classes birds.frugal cat wolf
unlearn birds.frugal cat third/emu
undo birds.frugal
undo birds.frugal
"""

#: What differs from run to run, and what stands for it.
VOLATILE = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([+-]\d\d:?\d\d|Z)?( UTC)?": "TIME",
    r"\b(?=\d*[a-f])[0-9a-f]{16,}\b": "DIGEST",
    r"\bin \d+\.\d s\b(, [\d.,]+ a second)?": "in SECONDS",
    r"\b[\d,]+ bytes\b|\b\d+(\.\d)? kB\b": "SIZE",
    r'"(bytes|file_size)": \d+': r'"\1": SIZE',
    rf"frugalvae {re.escape(__version__)}": "frugalvae VERSION",
}
FIGURE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def draw(place: Path) -> None:
    """Noisy photographs, each class around a colour of its own."""
    rng = np.random.default_rng(0)

    def paint(folder: str, names: str, count: int, shift: int = 0) -> None:
        for name in names.split():
            (place / folder / name).mkdir(parents=True)
            for number in range(count):
                shade = np.array(SHADES[name]) * 0.4 + rng.normal(80 + shift, 8, size=3)
                pixels = np.clip(rng.normal(shade, 40, size=(64, 64, 3)), 0, 255)
                photograph = Image.fromarray(pixels.astype(np.uint8))
                photograph.save(place / folder / name / f"{number}.png")

    paint("photos", "cat dax", 8)
    paint("more", "emu fox", 6)
    paint("third", "emu", 4, shift=5)
    paint("test", "cat dax emu fox", 3, shift=3)
    paint("mixed", "cat gnu", 4, shift=8)
    paint("apart", "gnu cat", 5, shift=12)
    zipped(place / "apart", place / "apart.zip")


def transcribe(place: Path) -> str:
    """All commands and what they print, in a folder of their own."""
    draw(place)
    told = []
    with (
        mock.patch("frugalvae.encoders.make_encoder", return_value=Colours()),
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
    ):
        for command in COMMANDS.strip().splitlines():
            out, err = StringIO(), StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                try:
                    code = main(shlex.split(command))
                except SystemExit as stop:  # of a command that cannot be read
                    code = int(stop.code or 0)
            parts = [f"$ frugalvae {command}\n", out.getvalue(), err.getvalue()]
            told.append("".join(parts) + (f"(exit code {code})\n" if code else ""))
    text = "\n".join(told).replace(str(place), "PLACE")
    for pattern, name in VOLATILE.items():
        text = re.sub(pattern, name, text)
    return text


def differences(found: str, expected: str) -> list[str]:
    """Lines that differ in words, or in figures by more than rounding does."""
    pairs = zip(found.splitlines(), expected.splitlines(), strict=False)
    differ = [f"{one!r} instead of {other!r}" for one, other in pairs if not alike(one, other)]
    lengths = [len(text.splitlines()) for text in (found, expected)]
    return differ + [f"{lengths[0]} lines instead of {lengths[1]}"] * (lengths[0] != lengths[1])


def alike(one: str, other: str) -> bool:
    if FIGURE.sub("#", one) != FIGURE.sub("#", other):
        return False
    pairs = zip(FIGURE.findall(one), FIGURE.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-3) for a, b in pairs)


def test_every_verb_prints_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2", reason="without it some verbs say so instead")
    monkeypatch.chdir(tmp_path)
    found = transcribe(tmp_path)
    assert differences(found, TRANSCRIPTS.read_text("utf-8"))[:5] == []


def test_the_interface_over_http_is_what_it_was() -> None:
    app = pytest.importorskip("frugalvae.server.app", reason="the extra serve is absent")
    described = app.models.description("birds.frugal", app.OPERATIONS)
    assert described == json.loads(OPENAPI.read_text("utf-8"))


def test_a_word_or_a_figure_that_changed_is_seen() -> None:
    assert alike("8 images, 99.05 %", "8 images, 99.0504 %")
    assert not alike("8 images, 99.05 %", "8 images, 98.05 %")
    assert not alike("8 images, 99.05 %", "8 pictures, 99.05 %")
    assert differences("a\nb\n", "a\n") == ["2 lines instead of 1"]


if __name__ == "__main__":
    import tempfile

    from frugalvae.server import app

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        TRANSCRIPTS.write_text(transcribe(Path(folder).resolve()), "utf-8")
    described = app.models.description("birds.frugal", app.OPERATIONS)
    OPENAPI.write_text(json.dumps(described, indent=1) + "\n", "utf-8")
    print(f"wrote {TRANSCRIPTS} and {OPENAPI}")
