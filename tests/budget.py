"""How many lines, files and words each room has, compared with the most that it may have.

``make lint`` prints the table and fails if a room has grown beyond its limit. Limits only fall:
whoever makes a room smaller runs ``python -m tests.budget --lower``, which writes what there is
now into ``tests/budget.toml`` and raises nothing.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tests/budget.toml"
SLACK = 1.02  # a limit that is further above than this is to be lowered

Sizes = dict[str, dict[str, int]]  # of each room, and of each whole


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


def count() -> Sizes:
    """What there is now: of each room, and of each whole."""
    return {"room": rooms(), "whole": {name: found() for name, found in WHOLES.items()}}


def read_limits() -> Sizes:
    """The most that each may have; nothing before the file is written."""
    limits: Sizes = tomllib.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else {}
    return {title: limits.get(title, {}) for title in ("room", "whole")}


def lowered(limits: Sizes, now: Sizes) -> Sizes:
    """Each limit at what there is now and room to mend, where that is less than it was.

    What is gone has no limit.

    >>> limits = {"room": {"cli": 900, "server": 500, "verbs": 80}}
    >>> lowered(limits, {"room": {"cli": 790, "server": 600}})
    {'room': {'cli': 850, 'server': 500}}
    """
    return {
        title: {
            name: min(with_room(size), limits[title].get(name, with_room(size)))
            for name, size in sizes.items()
        }
        for title, sizes in now.items()
    }


def with_room(size: int) -> int:
    """A little more, so that a line that mends something needs no other line to go.

    >>> [with_room(size) for size in (157, 790, 2239, 31009)]
    [157, 850, 2300, 31050]
    """
    return size if size < 500 else -(-(size + 25) // 50) * 50


def write_limits(limits: Sizes) -> None:
    """Write ``tests/budget.toml``."""
    tables = [
        f"[{title}]\n" + "".join(f'"{name}" = {size}\n' for name, size in sorted(sizes.items()))
        for title, sizes in limits.items()
    ]
    head = (
        "# The most that each room may have. python -m tests.budget --lower writes this file.\n\n"
    )
    LIMITS.write_text(head + "\n".join(tables), "utf-8")


def table(now: Sizes, limits: Sizes) -> tuple[list[str], bool]:
    """The lines to print, and whether everything is within its limit."""
    printed, fits = [], True
    for title, sizes in now.items():
        printed.append(f"{title:24} {'now':>7} {'at most':>8}")
        for name in sorted({*sizes, *limits[title]}):
            size, most = sizes.get(name, 0), limits[title].get(name)
            note = ""
            if most is None or size > most:
                note, fits = "NO LIMIT" if most is None else "TOO LARGE", False
            elif not size or size * SLACK < most:
                note = "lower its limit"
            printed.append(f"{name:24} {size:7,} {most or 0:8,} {note}".rstrip())
    return printed, fits


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or lower the limits; 1 if anything is larger than it may be."""
    now = count()
    if "--lower" in (sys.argv[1:] if arguments is None else arguments):
        write_limits(lowered(read_limits(), now))
    printed, fits = table(now, read_limits())
    print("\n".join(printed))
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())
