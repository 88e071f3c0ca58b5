"""The pages that people read: no link leads nowhere, and nothing was left to be filled in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def anchors(page: Path) -> set[str]:
    """What may stand behind ``#`` in a link to a page, as its headings become it."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.findall(r"@[A-Z]+@|\bTODO\b|^TABLES$", text, re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
