"""The section "Tray"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.browser.serving import Served
from tests.browser.visitor import Visitor


def test_several_are_assigned_at_once(visitor: Visitor, pictures: Path) -> None:
    kiwis, lemons = sorted((pictures / "kiwi").iterdir()), sorted((pictures / "lemon").iterdir())
    visitor.choose("ask", *kiwis[:3], lemons[0])
    visitor.answered(4)
    visitor.go("tray")
    visitor.see("#tray", "Nothing is written to disk.")
    visitor.see(".tile", times=4)
    visitor.see(".tile img[src^='blob:']", times=4)
    visitor.find(".segments button", "Unknown").click()
    visitor.see(".tile", times=3)
    visitor.click("Select all")
    visitor.see(".assign", "3 selected")
    visitor.type("They are", "kiwi")
    visitor.press("Escape")
    visitor.click("Learn", ".assign")
    visitor.see(".notice", "3 photographs learned as kiwi")
    visitor.see(".summary", "4 classes")
    visitor.find(".segments button", "Learned").click()
    visitor.see(".tile", "kiwi", times=3)
    visitor.click("Undo", ".notice")
    visitor.see(".summary", "3 classes")
    visitor.find(".segments button", "Unknown").click()
    visitor.see(".tile", times=3)


def test_names_are_not_cut_on_a_telephone(
    fresh: Served, visit: Callable[..., Visitor], pictures: Path
) -> None:
    fresh.tool("rename", "plum", "damson of the northern gardens")
    visitor = visit(fresh, viewport={"width": 390, "height": 844})
    visitor.choose("ask", pictures / "asked/plum.jpg")
    visitor.answered()
    visitor.go("tray")
    name = visitor.see(".tile .label", "damson of the northern gardens")
    for side in ("Width", "Height"):
        assert name.evaluate(f"e => e.scroll{side} - e.client{side}") <= 1, side


def test_what_teaches_most_comes_first(visitor: Visitor, pictures: Path) -> None:
    kiwis = sorted((pictures / "kiwi").iterdir())
    visitor.choose("ask", *kiwis, pictures / "asked/plum.jpg")
    visitor.answered(7)
    visitor.go("tray")
    visitor.see(".tile", times=7)
    visitor.find(".toggle").click()
    visitor.see(".tile:first-child", "None of these")  # the plum was asked last
    visitor.find(".alike .chip", "that look alike").first.click()
    visitor.see(".assign", "selected")
    assert visitor.focused() == "They are"


def test_the_tray_is_emptied(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", *sorted((pictures / "plum").iterdir())[:4])
    visitor.answered(4)
    visitor.go("tray")
    tiles = visitor.see(".tile", times=4)
    tiles.nth(0).click()
    tiles.nth(2).click(modifiers=["Shift"])
    visitor.see(".assign", "3 selected")
    tiles.nth(2).click()
    visitor.see(".assign", "2 selected")
    visitor.click("Remove", ".assign")
    visitor.see(".tile", times=2)
    visitor.click("Empty the tray")
    visitor.see("#tray", "Nothing was asked lately.")
