"""Servers that are slow, die, want a token; and files that somebody else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.serving import Served
from tests.browser.visitor import Visitor

Serve, Visit = Callable[..., Served], Callable[..., Visitor]


def test_a_server_that_dies_and_comes_back(serve: Serve, visit: Visit, pictures: Path) -> None:
    served = serve("--teach")
    visitor = visit(served, "teach")
    visitor.type("What do they show?", "kiwi")
    visitor.press("Escape")
    visitor.choose("teach", *sorted((pictures / "kiwi").iterdir()))
    served.kill()
    visitor.see(".banner", "The server does not answer.")
    visitor.click("Teach 6 photographs")
    visitor.see("#teach progress")
    served.start()
    visitor.see(".notice", "The server is back.")
    visitor.miss(".banner")
    visitor.see(".result-card .what", "It knows kiwi")  # by itself


def test_a_question_waits_for_the_server(serve: Serve, visit: Visit, pictures: Path) -> None:
    served = serve("--teach")
    visitor = visit(served)
    served.kill()
    visitor.choose("ask", pictures / "asked/lemon.jpg")
    visitor.see(".answer", "Waits for the server")
    served.start()
    visitor.see(".answer .what", "lemon")
    served.kill()
    served.start()  # which has forgotten what was asked
    visitor.find(".answer .chip", "Yes").click()
    visitor.see(".answer .learned", "lemon")


def test_a_slow_server(visitor: Visitor, pictures: Path) -> None:
    visitor.page.route("**/predict*", lambda _: None)  # which is never answered
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg")
    visitor.see(".answer[data-state=waiting]", "Looking")
    visitor.click("Stop", "#ask")
    visitor.see(".notice", "Stopped: 0 of 1 were answered.")
    visitor.go("classes")  # the rest of the page goes on
    visitor.see(".class-row", times=3)
    visitor.page.unroute("**/predict*")
    visitor.go("ask")
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg")
    visitor.answered()


def test_changes_of_others_are_noticed(fresh: Served, visit: Visit) -> None:
    one, other = visit(fresh, "classes"), visit(fresh, "classes")
    one.see(".class-row", times=3)
    other.see(".class-row", times=3)
    other.click("Forget plum")
    other.click("Forget plum", ".row-form")
    one.see(".notice", "fruit.frugal was changed elsewhere: 2 classes")
    one.see(".class-row", times=2)
    fresh.tool("rename", "apple", "pippin")
    for visitor in (one, other):
        visitor.see(".class-row", "pippin")
    other.go("teach")
    other.type("What do they show?", "pip")
    other.see("[role=option]", "pippin")


def test_a_change_that_comes_too_late_is_refused(fresh: Served, visit: Visit) -> None:
    visitor = visit(fresh, "classes")
    visitor.click("Rename plum")
    visitor.type("New name", "damson")
    visitor.page.route("**/status", lambda _: None)  # it does not hear of the change
    fresh.tool("rename", "plum", "prune")
    visitor.click("Save")
    visitor.see(".row-form [role=alert]", "fruit.frugal was changed meanwhile")
    assert "prune" in fresh.tool("status")


def test_a_broken_file_is_reported(fresh: Served, visit: Visit, pictures: Path) -> None:
    visitor = visit(fresh)
    whole = fresh.file.read_bytes()
    fresh.file.write_bytes(whole[:1000])
    visitor.see(".banner", "The file cannot be read any more")
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg")
    visitor.see(".answer .what", "lemon")  # from its last state
    fresh.file.write_bytes(whole)
    visitor.miss(".banner")


def test_a_token_is_asked_for(serve: Serve, browser: Any, tmp_path: Path) -> None:
    token = tmp_path / "token.txt"
    token.write_text("correct-horse-battery-staple\n")
    served = serve("--teach", "--token-file", str(token))
    context = browser.new_context()
    visitor = Visitor(context.new_page(), served.address)
    visitor.page.goto(visitor.address)
    visitor.type("Token", "wrong")
    visitor.press("Enter")
    visitor.see("dialog", "This is not the token.")
    visitor.type("Token", "correct-horse-battery-staple")
    visitor.click("Continue")
    visitor.see(".summary", "3 classes")
    visitor.page.reload()
    visitor.see(".summary", "3 classes")  # the tab remembers it
    assert visitor.problems == []
    context.close()
