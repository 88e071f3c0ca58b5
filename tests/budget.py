"""How many lines, files and words each room has, beside what it may have at most.

``make lint`` prints the table and fails if a room has grown beyond its limit. Limits only fall:
whoever makes a room smaller lowers its limit in ``tests/budget.toml``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLACK = 1.02  # a limit that is further above than this is to be lowered


def python(folder: str) -> list[Path]:
    """The Python files below a folder."""
    return sorted((ROOT / folder).rglob("*.py"))


def lines(paths: list[Path]) -> int:
    """Lines in all of them."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def words(paths: list[Path]) -> int:
    """Words in all of them."""
    return sum(len(path.read_text("utf-8").split()) for path in paths)


def page() -> list[Path]:
    """What browsers get, and the templates of reports."""
    kinds = {".js", ".css", ".html"}
    return [path for path in (ROOT / "src/frugalvae").rglob("*") if path.suffix in kinds]


#: What is counted besides the rooms of the product.
WHOLES: dict[str, Callable[[], int]] = {
    "product, lines": lambda: lines(python("src/frugalvae")),
    "product, files": lambda: len(python("src/frugalvae")),
    "lab, lines": lambda: lines(python("lab/src")),
    "page, lines": lambda: lines(page()),
    "tests, lines": lambda: lines([*python("tests"), *python("lab/tests")]),
    "docs, words": lambda: words([*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]),
}


def rooms() -> dict[str, int]:
    """Lines of each folder of the product, and of the files beside them."""
    found: dict[str, int] = {}
    for path in python("src/frugalvae"):
        parts = path.relative_to(ROOT / "src/frugalvae").parts
        room = parts[0] if len(parts) > 1 else "root"
        found[room] = found.get(room, 0) + lines([path])
    return found


def main() -> int:
    """Print the table; 1 if anything is larger than it may be, or has no limit."""
    limits = tomllib.loads((ROOT / "tests/budget.toml").read_text("utf-8"))
    wrong = 0
    for title, found in (
        ("room", rooms()),
        ("whole", {name: count() for name, count in WHOLES.items()}),
    ):
        known = limits[title]
        print(f"{title:24} {'now':>7} {'at most':>8}")
        for name in sorted({*found, *known}):
            now, most = found.get(name, 0), known.get(name)
            note = ""
            if most is None or now > most:
                note, wrong = "TOO LARGE" if most else "NO LIMIT", 1
            elif not now or now * SLACK < most:
                note = "lower its limit"
            print(f"{name:24} {now:7,} {most or 0:8,} {note}".rstrip())
    return wrong


if __name__ == "__main__":
    sys.exit(main())
