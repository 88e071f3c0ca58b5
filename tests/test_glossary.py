"""The code speaks the words of ``docs/glossary.md``: no more of the others than there were.

``tests/glossary.toml`` has how often each word of the glossary's last columns may still appear;
a word without an allowance may not appear. ``python -m tests.test_glossary`` lowers allowances to
what there is now, and raises none.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "tests/glossary.toml"
FOLDERS = ("src/frugalvae", "lab/src/frugalvae_lab")


def banned(glossary: str) -> dict[str, set[str]]:
    """Words of the last columns, of tables headed "not" (everywhere) and "not in names".

    >>> table = "| word | not |\\n| --- | --- |\\n| image | picture, width (of an image) |"
    >>> banned(table)
    {'not': {'picture'}, 'not in names': set()}
    """
    words: dict[str, set[str]] = {"not": set(), "not in names": set()}
    heading = ""
    for line in glossary.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 2 or set(cells[0]) == {"-"}:
            heading = heading if len(cells) > 1 else ""
        elif not heading:
            heading = cells[-1]
        elif heading in words:
            words[heading] |= set(re.findall(r"[a-z]+(?=,|$)", cells[-1]))
    return words


def words_of(name: str) -> list[str]:
    """The words of an identifier.

    >>> words_of("LoadedEncoder"), words_of("views_told_by_HTTP")
    (['loaded', 'encoder'], ['views', 'told', 'by', 'http'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names(path: Path, tree: ast.Module) -> Iterator[str]:
    """Names of the module, and of its classes, functions and arguments."""
    yield path.stem
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def sentences(path: Path, tree: ast.Module) -> Iterator[str]:
    """Texts with blanks, as messages and helps are; of docstrings, those that are helps."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
    if path.parent.name == "cli":
        yield ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and node not in skipped else None
        if isinstance(text, str) and " " in text.strip():
            yield text


def uses() -> Counter[str]:
    """How often each word that the glossary bans is in names and messages of the code."""
    words = banned((ROOT / "docs/glossary.md").read_text("utf-8"))
    count: Counter[str] = Counter()
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        for name in names(path, tree):
            count.update(words["not"].union(words["not in names"]).intersection(words_of(name)))
        for text in sentences(path, tree):
            count.update(word for word in re.findall(r"[a-z]+", text) if word in words["not"])
    return count


def allowed() -> dict[str, int] | None:
    """The allowances; ``None`` before they are written."""
    return tomllib.loads(ALLOWED.read_text("utf-8")) if ALLOWED.exists() else None


def test_names_and_messages_use_the_words_of_the_glossary() -> None:
    allowance = allowed() or {}
    grown = {word: n for word, n in sorted(uses().items()) if n > allowance.get(word, 0)}
    assert not grown, f"docs/glossary.md has other words for these: {grown}; allowed: {allowance}"


def test_a_glossary_without_words_would_find_nothing() -> None:
    words = banned((ROOT / "docs/glossary.md").read_text("utf-8"))
    assert {"picture", "told", "beside", "lot"} <= words["not"]
    assert {"asked", "looks", "meant", "seen"} <= words["not in names"]
    assert not words["not"] & {"width", "index", "number"}  # with a remark: right elsewhere


def main() -> None:
    """Lower each allowance to what there is now."""
    before, now = allowed(), uses()
    lines = ["# How often words that docs/glossary.md does not want may still be in the code."]
    for word, count in sorted(now.items()):
        most = count if before is None else min(count, before.get(word, 0))
        lines += [f"{word} = {most}"] if most else []
    ALLOWED.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
