"""Light, dark and telephones; screen readers; the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Served
from tests.browser.visitor import Visitor

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


def check(visitor: Visitor, where: str) -> None:
    """No violation that axe-core can find."""
    from axe_playwright_python.sync_playwright import Axe

    visitor.page.evaluate("Promise.all(document.getAnimations().map((a) => a.finished))")
    found = Axe().run(visitor.page).response["violations"]
    told = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
    assert told == [], where


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing(
    fresh: Served, visit: Callable[..., Visitor], look: str, pictures: Path
) -> None:
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    visitor = visit(fresh, reduced_motion="reduce", **LOOKS[look])
    check(visitor, "ask, empty")
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg", pictures / "kiwi/kiwi-1.jpg")
    cards = visitor.answered(2)
    cards.nth(0).locator(".chip").last.click()
    visitor.see("[role=listbox]")
    cards.nth(1).locator(".link", has_text="Why?").click()
    visitor.see(".why canvas", times=2)
    check(visitor, "ask, with answers, a field and an explanation")
    visitor.go("teach")
    visitor.type("What do they show?", "kiwi")
    visitor.press("Escape")
    visitor.choose("teach", *sorted((pictures / "kiwi").iterdir())[:3])
    check(visitor, "teach, with photographs")
    visitor.click("Teach 3 photographs")
    visitor.see(".result-card")
    check(visitor, "teach, with a result")
    visitor.go("tray")
    visitor.find(".toggle").click()
    visitor.see(".tile", times=2).first.click()
    check(visitor, "tray, sorted, one selected")
    visitor.go("classes")
    visitor.see("svg.map")
    visitor.click("Forget kiwi")
    visitor.click("Rename plum")
    visitor.type("New name", "lemon")
    visitor.click("Save")
    visitor.see(".row-form [role=alert]")
    check(visitor, "classes, a question and a refusal")


def test_the_keyboard_is_enough(visitor: Visitor, pictures: Path) -> None:
    visitor.press("Tab")
    assert visitor.focused() == "Skip to the content"
    visitor.press("Enter", "Tab")
    assert visitor.focused() == "Choose photographs"
    with visitor.page.expect_file_chooser() as chooser:
        visitor.press("Enter")
    chooser.value.set_files(pictures / "kiwi/kiwi-0.jpg")
    visitor.answered()
    reach(visitor, "another …")
    visitor.press("Enter")
    assert visitor.focused() == "What is it?"
    visitor.page.keyboard.type("kiwi")
    visitor.press("Enter")
    visitor.see(".answer .learned", "kiwi")
    assert visitor.focused() == "Undo"
    visitor.press("Enter")
    visitor.see(".summary", "3 classes")
    reach(visitor, "Classes", back=True)
    visitor.press("Enter")
    visitor.see(".class-row", times=3)
    assert visitor.focused() == "What it knows"
    reach(visitor, "Rename lemon")
    visitor.press("Enter")
    visitor.page.keyboard.type("citron")
    visitor.press("Enter")
    visitor.see(".class-row", "citron")


def reach(visitor: Visitor, name: str, *, back: bool = False) -> None:
    """Press Tab until something of this name has the focus."""
    for _ in range(40):
        visitor.press("Shift+Tab" if back else "Tab")
        if visitor.focused() == name:
            return
    raise AssertionError(f"{name} cannot be reached")


def test_the_theme_can_be_chosen(visitor: Visitor) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    shades = set()
    for now in ("as the system", "light", "dark"):
        shades.add(visitor.page.evaluate(ground))
        visitor.click(f"Theme: {now}")
    shades.add(visitor.page.evaluate(ground))
    assert len(shades) == 2
