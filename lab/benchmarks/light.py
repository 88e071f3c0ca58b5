"""Teach and ask photographs with the base installation alone. Run with ``make light``.

The photographs are the birds in the folder that FRUGALVAE_DATA names; where there are none,
shapes are drawn. Nothing but the base installation is needed, and nothing else is imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from lab.benchmarks.pictures import find_or_draw

HEAVY = ("torch", "transformers", "ray", "matplotlib", "jinja2")


def main() -> None:
    absent = [name for name in HEAVY if find_spec(name) is None]
    print(f"not installed here: {', '.join(absent) or 'nothing is missing'}")
    taken = sum(path.stat().st_blocks * 512 for path in Path(sys.prefix).rglob("*"))
    print(f"this environment takes {taken / 1e6:.0f} MB\n")
    with tempfile.TemporaryDirectory() as name:
        folder, drawn = find_or_draw(Path(name) / "pictures")
        print("no birds in FRUGALVAE_DATA: shapes are drawn\n" if drawn else f"birds: {folder}\n")
        file = Path(name, "taught.frugal")
        run("learn", str(file), str(folder / "train"))
        run("status", str(file))
        answers = json.loads(run("predict", str(file), str(folder / "test"), "--json", show=False))
    right = [Path(a["input"]).parent.name == a["label"] for a in answers["predictions"]]
    print(f"{sum(right)} of {len(right)} test pictures are named right")
    if sum(right) < 0.75 * len(right):
        raise SystemExit("fewer than three quarters are right: something is wrong")


def run(*words: str, show: bool = True) -> str:
    """A command in a process of its own, and how long it took."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "frugalvae", *words]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(f"$ frugalvae {words[0]} ...   ({time.perf_counter() - started:.1f} s)")
    if show:
        print(printed)
    return printed


if __name__ == "__main__":
    main()
