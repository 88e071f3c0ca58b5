"""Photographs of a data set, drawn into folders that ``frugalvae encode`` takes.

``python -m lab.benchmarks.draw Fruit-Images-Dataset fruit --train 30 --test 10`` links that many of
each class into ``fruit/train`` and ``fruit/test``. Without numbers, the photographs of both parts
are joined, a folder for each class: ``python -m lab.benchmarks.draw PlantDoc-Dataset plants``.
A class may be deeper, as ``Fruit/Apple/Golden-Delicious``; the name of its own folder is its name.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator
from pathlib import Path

PARTS = {"test": "test", "train": "train", "training": "train"}  # in lower case


def main() -> None:
    """Link the photographs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a folder with train/ and test/, or Training/ …")
    parser.add_argument("target", type=Path, help="a folder to make, on the same disk")
    parser.add_argument("--train", type=int, help="training photographs of each class")
    parser.add_argument("--test", type=int, help="test photographs of each class")
    options = parser.parse_args()
    if (options.train is None) != (options.test is None):
        parser.error("give both --train and --test, or neither")
    if options.target.exists():
        parser.error(f"{options.target} exists already; name another folder")
    joined, total = options.train is None, 0
    for part, name, files in classes_of(options.source):
        folder = options.target / name if joined else options.target / part / name
        folder.mkdir(parents=True, exist_ok=True)
        for file in files if joined else files[: getattr(options, part)]:
            os.link(file, folder / (f"{part}-{file.name}" if joined else file.name))
            total += 1
    if not total:
        parser.error(f"{options.source} has no folders train/CLASS and test/CLASS with files")
    print(f"{total:,} photographs in {options.target}")


def classes_of(source: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """Part, class, and the files of it in a random order that is always the same."""
    rng = random.Random(0)
    parts = {PARTS[p.name.lower()]: p for p in source.iterdir() if p.name.lower() in PARTS}
    for part in sorted(parts):
        for folder in sorted(path for path in parts[part].rglob("*") if path.is_dir()):
            files = sorted(file for file in folder.iterdir() if file.is_file())
            if files:
                rng.shuffle(files)
                yield part, folder.name, files


if __name__ == "__main__":
    main()
