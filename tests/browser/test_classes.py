"""The section "Classes", and names that want to be more than text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.serving import Served
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
    visitor.see(".pairs-card", "Too few photographs of each class were tested to say")
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


def test_classes_of_too_few_photographs_are_named(visitor: Visitor) -> None:
    def tested(route: Any) -> None:
        answer = route.fetch()
        known = answer.json()
        for one in known["classes"]:
            one["interval"] = None if one["label"] in few else [0.8, 1.0]
        route.fulfill(response=answer, json={**known, "confused": confused})

    few, confused = {"plum"}, list[dict[str, Any]]()
    visitor.page.route("**/classes", tested)
    visitor.go("classes")
    text = "Too few photographs were tested of plum"
    visitor.see(".pairs-card", f"No two classes that were tested are likely to be confused. {text}")
    confused.append({"label": "apple", "taken_for": "lemon", "share": 0.2})
    visitor.page.reload()
    visitor.see(".pairs-card .pair", "apple")
    visitor.see(".pairs-card", text)
    visitor.miss(".pairs-card", "The others")
    few |= {"apple", "lemon"}
    visitor.page.reload()
    visitor.see(".pairs-card", "Too few photographs of each class were tested to be sure of these.")


def test_every_dot_of_the_map_tells_its_name(visitor: Visitor, fresh: Served) -> None:
    long = "Black_footed_Albatross_of_the_Northern_hemisphere"
    fresh.tool("rename", "apple", long)
    visitor.go("classes")
    visitor.see("svg.map circle", times=3)
    names = {long, "lemon", "plum"}
    dots = visitor.find("svg.map circle")
    assert {dot.get_attribute("aria-label") for dot in dots.all()} == names
    assert {dot.text_content() for dot in dots.all()} == names  # what pointing at them shows
    visitor.miss(".map-tip")
    visitor.find(f"svg.map circle[data-label={long}]").hover()
    visitor.see(".map-tip", long)
    visitor.page.mouse.move(0, 0)
    visitor.miss(".map-tip")
    visitor.page.locator("svg.map circle[tabindex='0']").focus()  # the one that Tab reaches
    told = []
    for _ in range(3):
        told.append(visitor.text(".map-tip"))
        assert visitor.focused() == told[-1]
        visitor.press("ArrowRight")
    assert set(told) == names
    visitor.press("ArrowLeft", "Enter")
    visitor.see(".class-row.marked", told[2])


LINES = """element => {
    const [lines, range] = [[], document.createRange()];
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let bottom = -Infinity;
    while (texts.nextNode()) {
        for (const place of texts.currentNode.data.split("").keys()) {
            range.setStart(texts.currentNode, place);
            range.setEnd(texts.currentNode, place + 1);
            const [box] = range.getClientRects();
            if (box && box.top >= bottom) lines.push("");
            if (box) bottom = box.bottom - 1;
            if (lines.length) lines[lines.length - 1] += texts.currentNode.data[place];
        }
    }
    return lines;
}"""


def test_on_a_telephone_names_are_broken_between_their_words(
    fresh: Served, visit: Callable[..., Visitor], pictures: Path
) -> None:
    names = {
        "apple": "Black_footed_Albatross_of_the_Northern_hemisphere",
        "lemon": "ruby-throated-hummingbird-of-the-northern-hemisphere",
        "plum": "ruby throated hummingbird of the northern hemisphere",
    }
    for old, new in names.items():
        fresh.tool("rename", old, new)
    visitor = visit(fresh, viewport={"width": 375, "height": 780})
    visitor.choose("ask", *(pictures / f"asked/{kind}.jpg" for kind in names))
    visitor.answered(3)
    found = visitor.see(".answer .what", times=3).all()
    broken = [found.evaluate(LINES) for found in found]
    visitor.go("tray")
    broken += [found.evaluate(LINES) for found in visitor.see(".tile .label", times=3).all()]
    visitor.go("classes")
    for selector in (".class-name", ".event-text", ".details .label"):
        broken += [found.evaluate(LINES) for found in visitor.see(selector).all()]
    assert sum(len(lines) > 1 for lines in broken) >= 7
    for line in [line for lines in broken for line in lines[:-1]]:
        assert re.search(r"[\s_-]$", line), broken


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
