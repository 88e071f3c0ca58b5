"""Eight birds, by the commands that anybody would type: two tasks, and a file to merge.

Photographs are looked for in ``birds`` (``train/CLASS/*.jpg``, ``test/CLASS/*.jpg``), in the
folder that FRUGALVAE_DATA names (default: ``data``) or in ``images`` inside it. Everything
that is written goes to a temporary folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from frugalvae.cli.main import main as frugalvae
from lab.benchmarks.pictures import find_birds

TASKS = 2


def main() -> None:
    birds, started = photographs(), time.perf_counter()
    if birds is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("photos").symlink_to(birds)
        teach(Path("photos"))
        right, seen = accuracy(Path("photos"))
        os.chdir(birds)  # so that the folder can be removed
    print(
        f"\n{right} of {seen} test photographs are named right: {right / seen:.1%} "
        f"({time.perf_counter() - started:.0f} s in all)"
    )


def photographs() -> Path | None:
    """Where the photographs are; a line says so if they are nowhere."""
    found = find_birds()
    if found:
        return found.resolve()
    folder = os.environ.get("FRUGALVAE_DATA", "data")
    print(
        f"skipped: there are no birds in {folder}; set FRUGALVAE_DATA to a folder with "
        "birds/train/CLASS/*.jpg and birds/test/CLASS/*.jpg, or with images/birds/..."
    )
    return None


def teach(birds: Path) -> None:
    """Two tasks, each from a folder with the classes of its own and nothing else, and a merge."""
    classes = sorted(path.name for path in (birds / "train").iterdir() if path.is_dir())
    size = -(-len(classes) // (TASKS + 1))
    for task in range(TASKS + 1):
        week = Path(f"week{task + 1}" if task < TASKS else "elsewhere")
        week.mkdir()
        for name in classes[task * size : (task + 1) * size]:
            (week / name).symlink_to(Path("..") / birds / "train" / name)
        run("learn", "birds.frugal" if task < TASKS else "friend.frugal", f"{week}/")
    run("merge", "birds.frugal", "friend.frugal")
    run("status", "birds.frugal")
    one = sorted((birds / "test" / classes[0]).iterdir())[0]
    run("predict", "birds.frugal", str(one), "--top", "3")
    noise = np.random.default_rng(0).integers(0, 256, (240, 320, 3), dtype=np.uint8)
    Image.fromarray(noise).save("noise.png")
    Image.new("RGB", (320, 240), "white").save("blank.png")
    run("predict", "birds.frugal", "noise.png", "blank.png", "--unknown")


def accuracy(birds: Path) -> tuple[int, int]:
    """How many test photographs are named as their folder is, of how many."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        frugalvae(["predict", "birds.frugal", str(birds / "test"), "--json"])
    answers = json.loads(written.getvalue())["predictions"]
    right = [Path(answer["input"]).parent.name == answer["label"] for answer in answers]
    return sum(right), len(right)


def run(*words: str) -> None:
    """A command, as it is typed, with what it says."""
    print(f"\n$ frugalvae {shlex.join(words)}", flush=True)
    code = frugalvae(words)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
