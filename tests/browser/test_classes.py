"""The section "Classes", and names that want to be more than text."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser.visitor import Visitor

HOSTILE = "<img src=x onerror=document.title='taken'>"
LONG = "wind" * 45
ARABIC = "تفاحة (خضراء) 7"


def test_classes_are_renamed_and_forgotten(visitor: Visitor) -> None:
    visitor.go("classes")
    visitor.see(".class-row", times=3)
    visitor.see(".class-row", "6 samples", times=3)
    visitor.see("svg.map circle", times=3)
    visitor.see(".caution", "are recognised less often.")
    visitor.see(".facts", re.compile(r"about 100\s% \(\d\d to 100\)"))
    visitor.see(".class-row", "expected accuracy: too few photographs were tested to say", times=3)
    visitor.see(".pairs-card", "Too few photographs were tested to say.")
    visitor.see(".history li", "apple", times=1)
    visitor.click("Rename apple")
    visitor.press("Escape")
    assert visitor.focused() == "Rename apple"
    visitor.click("Rename apple")
    visitor.type("New name", "red apple")
    visitor.click("Save")
    visitor.see(".class-row", "red apple")
    visitor.see(".notice", "apple is red apple now")
    visitor.click("Undo", ".notice")
    visitor.miss(".class-row", "red apple")
    visitor.click("Forget plum")
    visitor.click("Keep it")
    visitor.click("Forget plum")
    visitor.click("Forget plum", ".row-form")
    visitor.see(".class-row", times=2)
    visitor.see(".history li", "Forgot plum")
    visitor.click("Undo", ".history")
    visitor.see(".class-row", times=3)
    visitor.see(".history", "Nothing to undo. One step is kept")
    visitor.miss(".history button")


def test_a_refused_name_is_kept_and_classes_can_be_joined(visitor: Visitor) -> None:
    visitor.go("classes")
    visitor.click("Rename apple")
    visitor.type("New name", "LEMON")
    visitor.click("Save")
    visitor.see(".row-form [role=alert]", "differ only in upper and lower case")
    assert visitor.page.get_by_label("New name").input_value() == "LEMON"
    visitor.type("New name", "lemon")
    visitor.click("Save")
    visitor.click("Make apple part of lemon")
    visitor.see(".notice", "apple is part of lemon now")
    visitor.see(".class-row", "12 samples", times=1)
    visitor.see(".history li", "Joined lemon and apple")


def test_a_row_leads_to_teaching_more(visitor: Visitor, pictures: Path) -> None:
    visitor.go("classes")
    visitor.click("Add photographs of plum")
    assert visitor.page.get_by_label("What do they show?").input_value() == "plum"


def test_names_are_text_wherever_they_are_shown(visitor: Visitor, pictures: Path) -> None:
    visitor.go("teach")
    for name in (HOSTILE, LONG, ARABIC):
        kind = {HOSTILE: "kiwi", LONG: "pear", ARABIC: "cherry"}[name]
        visitor.type("What do they show?", name)
        few = 2 if name is LONG else 4  # of which it warns
        visitor.choose("teach", *sorted((pictures / kind).iterdir())[:few])
        visitor.press("Escape")
        visitor.find("#teach button[type=submit]").click()
        visitor.see(".result-card .what", name)
    visitor.go("ask")
    visitor.choose("ask", pictures / "kiwi/kiwi-4.jpg", pictures / "pear/pear-4.jpg")
    visitor.answered(2)
    visitor.see(".answer", HOSTILE)
    visitor.go("tray")
    visitor.see(".tile", times=2)
    visitor.go("classes")
    visitor.see(".class-name", HOSTILE, times=1)
    visitor.see(".class-name", ARABIC, times=1)
    visitor.click(f"Forget {LONG}")
    visitor.see(".row-form", LONG)
    assert visitor.page.locator("img[src=x]").count() == 0
    assert "taken" not in visitor.page.title()
    visitor.page.set_viewport_size({"width": 360, "height": 780})
    for section in ("ask", "teach", "tray", "classes"):
        visitor.go(section)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 360, section
