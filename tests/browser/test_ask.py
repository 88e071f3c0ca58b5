"""The section "Ask", and "no, it is …" on every answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Served
from tests.browser.visitor import Visitor


def test_photographs_are_answered(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg")
    visitor.answered()
    assert visitor.text(".answer .what") == "lemon"
    assert visitor.text(".answer .chance").endswith("\N{NO-BREAK SPACE}%")
    assert visitor.text(".answer .foot").startswith("lemon-1.jpg")
    visitor.see(".answer .bars li", times=2)  # the two other classes
    visitor.see(".answer.large")
    visitor.give("drop", pictures / "kiwi/kiwi-0.jpg", pictures / "plum/plum-0.jpg")
    visitor.answered(3)
    visitor.miss(".answer.large")  # what was asked before makes room
    visitor.see(".answer[data-state=unknown] .what", "None of these")
    visitor.see(
        ".answer[data-state=unknown] .far",
        "taught photographs are more like their class than this is like any.",
    )
    visitor.see(".answer[data-state=unknown] .bars li", times=3)
    visitor.give("paste", pictures / "apple/apple-1.jpg")
    visitor.answered(4)
    visitor.click("Clear")
    visitor.answered(0)


def test_what_is_no_image_is_said(visitor: Visitor, pictures: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes((pictures / "lemon/lemon-1.jpg").read_bytes()[:500])
    visitor.give("drop", broken, pictures / "lemon/lemon-1.jpg")
    visitor.answered(2)
    visitor.see(".answer[data-state=failed]", "Cannot be read")
    visitor.see(".answer[data-state=sure]", "lemon")
    text = tmp_path / "notes.txt"
    text.write_text("not an image")
    visitor.page.set_input_files("#ask input[type=file]", text)
    visitor.see(".notice", "These are no images.")
    raw = tmp_path / "photo.CR2"
    raw.write_bytes(b"II*")
    visitor.page.set_input_files("#ask input[type=file]", [raw, pictures / "lemon/lemon-1.jpg"])
    visitor.see(".notice", "Left out, no images: photo.CR2")
    visitor.answered(3)


def test_an_answer_that_is_not_sure_says_between_what(visitor: Visitor, pictures: Path) -> None:
    visitor.page.evaluate(
        """() => {
            const ask = window.fetch;
            window.fetch = async (path, options) => {
                const reply = await ask(path, options);
                if (!path.startsWith("predict")) return reply;
                const said = await reply.json();
                const chances = [0.5, 0.45, 0.05];
                said.predictions[0].top.forEach((one, place) => one.probability = chances[place]);
                return Response.json(said);
            };
        }"""
    )
    visitor.choose("ask", pictures / "asked/lemon.jpg")
    visitor.see(".answer[data-state=unsure] .what", "Perhaps lemon")
    second = visitor.find(".answer .bars .label").first.inner_text()
    visitor.see(".answer .headline", f"Not sure between lemon and {second}.")


def test_one_click_corrects_and_another_undoes_it(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "pear/pear-0.jpg")
    card = visitor.answered()
    before = visitor.text(".summary")
    card.locator(".chip").first.click()
    visitor.see(".answer .learned", "Learned as")
    visitor.click("Undo", ".answer")
    visitor.see(".answer .chip")
    visitor.see(".notice", "Undone")
    visitor.see(".notice", "There is nothing more to undo.")
    visitor.see(".side .last", "Nothing to undo")
    assert visitor.text(".summary") == before


def test_a_correction_can_make_a_new_class(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "pear/pear-0.jpg")
    visitor.answered()
    visitor.click("another …", ".answer")
    visitor.type("What is it?", "pear")
    visitor.see("[role=option]", "new class")
    visitor.press("Enter")
    visitor.see(".answer .learned", "Learned as pear")
    visitor.see(".summary", "4 classes")  # and it is asked again by itself
    visitor.see(".answer[data-state=sure] .what, .answer[data-state=unsure] .what", "pear")
    visitor.click("Undo", ".answer")
    visitor.see(".summary", "3 classes")
    visitor.miss(".answer .chip[title*=pear]")  # it offers the classes that are known again
    visitor.see(".answer .chip[title]")


def test_a_refused_name_stays_with_the_reason(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "kiwi/kiwi-0.jpg")
    visitor.answered()
    visitor.click("another …", ".answer")
    visitor.page.keyboard.type("LEMON")
    visitor.miss(".offers li", "new class")  # a known name, whatever its case
    visitor.page.fill(".correct-form input", "kiwi\u202e")
    visitor.page.keyboard.press("Enter")
    visitor.see(".correct-form .bad-text", "control")
    assert visitor.page.input_value(".correct-form input") == "kiwi\u202e"
    visitor.page.keyboard.press("Enter")  # the same again, and nothing else is learned
    visitor.see(".correct-form .bad-text", "control")
    visitor.see(".summary", "3 classes")
    visitor.miss(".answer .learned")
    visitor.page.fill(".correct-form input", "Lemon")
    visitor.page.keyboard.press("Enter")
    visitor.see(".answer .learned", "lemon")


def test_yes_adds_the_photograph_to_its_class(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "asked/lemon.jpg")
    visitor.answered()
    visitor.find(".answer .chip", "Yes").click()
    visitor.see(".answer .learned", "lemon")


def test_a_click_below_an_open_list_is_not_lost(visitor: Visitor, pictures: Path) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 900})
    visitor.choose(
        "ask",
        pictures / "kiwi/kiwi-0.jpg",
        pictures / "asked/plum.jpg",
        *(pictures / "kiwi").iterdir(),
    )
    visitor.answered(8)
    visitor.find(".answer .chip", "another").first.click()
    visitor.see("[role=option]", times=3)
    visitor.find(".answer .chip", "Yes").first.click()  # which moves up when the list closes
    visitor.see(".answer .learned", "Learned as plum")
    visitor.miss("[role=option]")


def test_notices_go_when_they_no_longer_apply(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "asked/lemon.jpg", pictures / "asked/plum.jpg")
    cards = visitor.answered(2)
    cards.nth(0).locator(".chip", has_text="Yes").click()
    visitor.see(".answer .learned", "Learned as lemon")
    visitor.click("Undo", ".answer")
    visitor.see(".notice", "Undone: Learned lemon (1). There is nothing more to undo.").hover()
    cards.nth(1).locator(".chip", has_text="Yes").click()
    visitor.see(".answer .learned", "Learned as plum")
    visitor.miss(".notice", "Undone")
    visitor.see(".side .last", "Undo takes back")
    visitor.see(".side .last", "Learned plum (1)")
    visitor.give("drop")
    visitor.see(".notice", "These are no images.")
    visitor.give("drop", pictures / "asked/plum.jpg")
    visitor.answered(3)
    visitor.miss(".notice")


def test_a_card_offers_to_undo_the_last_change_alone(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "asked/lemon.jpg", pictures / "asked/plum.jpg")
    cards = visitor.answered(2)
    for card, name in ((cards.nth(0), "lemon"), (cards.nth(1), "plum")):
        card.locator(".chip", has_text="Yes").click()
        visitor.see(".answer .learned", f"Learned as {name}")
    visitor.see(".answer .button", "Undo", times=1)
    visitor.find(".side .button", "Undo").click()
    visitor.see(".notice", "Undone: Learned plum (1)")
    visitor.miss(".answer .learned", "plum")
    visitor.see(".answer .learned", "lemon")
    visitor.miss(".answer .button", "Undo")


def test_why_shows_what_speaks_for_two_classes(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "asked/lemon.jpg")
    card = visitor.answered()
    visitor.find(".answer .link", "Why?").click()
    visitor.see(".why canvas", times=2)
    visitor.see(".why .legend", f"Orange speaks for lemon ({visitor.text('.answer .chance')})")
    second, chance = (card.locator(f".bars {part}").first for part in (".label", ".number"))
    said = f"Blue speaks instead for {second.inner_text()} ({chance.inner_text()})"
    visitor.see(".why .legend", said)
    visitor.see(".why figcaption", "Taught with 6 photographs, the last on", times=2)
    visitor.find(".answer .link", "Why?").click()
    visitor.miss(".why canvas")


def test_reasons_stay_open_and_follow_the_file(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "asked/lemon.jpg")
    visitor.answered()
    visitor.find(".answer .link", "Why?").click()
    visitor.see(".why figcaption", "Taught with 6 photographs", times=2)
    visitor.find(".answer .chip", "Yes").click()
    visitor.see(".why figcaption", "Taught with 7 photographs", times=1)
    visitor.see(".why .legend", f"Orange speaks for lemon ({visitor.text('.answer .chance')})")


def test_a_class_that_goes_away_is_said(visitor: Visitor, pictures: Path) -> None:
    visitor.choose("ask", pictures / "kiwi/kiwi-0.jpg")
    visitor.answered()
    visitor.click("another …", ".answer")
    visitor.type("What is it?", "kiwi")
    visitor.press("Enter")
    visitor.see(".answer .learned", "Learned as kiwi")
    visitor.click("Clear")
    visitor.choose("ask", pictures / "kiwi/kiwi-0.jpg")
    card = visitor.answered()
    visitor.see(".answer .warn-text", "This is the only photograph of kiwi")
    card.locator(".chip", has_text="plum").click()
    visitor.see(".answer .warn-text", "kiwi had no other and is gone. Undo brings it back.")
    said = "Moved 1 photograph from kiwi to plum; kiwi had no other and is gone"
    visitor.see(".last-text", said)
    visitor.go("classes")
    visitor.see(".history li", said, times=1)
    visitor.miss(".history li", "Forgot")
    visitor.go("ask")
    visitor.click("Undo", ".answer")
    visitor.see(".summary", "4 classes")
    visitor.see(".answer .learned", "Learned as kiwi")


@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_the_names_cover_nothing(
    fresh: Served, visit: Callable[..., Visitor], pictures: Path, phone: bool
) -> None:
    options = {"viewport": {"width": 390, "height": 600}} if phone else {}
    visitor = visit(fresh, **options)
    visitor.choose("ask", pictures / "kiwi/kiwi-0.jpg", *sorted((pictures / "plum").iterdir())[:2])
    visitor.answered(3)
    visitor.find(".answer .chip", "another").first.click()
    visitor.see("[role=option]", times=3)
    places = {
        name: visitor.find(f".answer {name}").first.bounding_box() for name in (".offers", ".field")
    }
    below = places[".field"]["y"] + places[".field"]["height"]
    assert 0 <= places[".offers"]["y"] - below < 12  # the list is at its field
    other = visitor.find(".answer").nth(1).bounding_box()
    if other["x"] == visitor.find(".answer").nth(0).bounding_box()["x"]:
        assert other["y"] > places[".offers"]["y"] + places[".offers"]["height"]
    visitor.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    for place in ("[role=option]:last-child", ".correct-form .primary", ".correct-form .ghost"):
        visitor.find(place).click(trial=True)  # nothing is above it


def test_many_photographs_can_be_stopped(visitor: Visitor, pictures: Path) -> None:
    files = sorted(pictures.glob("*/*.jpg"))[:24]
    visitor.page.route("**/predict*", lambda route: slowly(visitor, route))
    visitor.choose("ask", *files)
    visitor.answered(8)
    visitor.see("progress")
    visitor.click("Stop", "#ask")
    visitor.see(".notice", "Stopped: 8 of 24 were answered.")
    visitor.see(".answer", times=8)


def test_a_camera_that_is_not_allowed_is_explained(visitor: Visitor) -> None:
    visitor.page.evaluate(
        """() => {
            const refused = new DOMException("no", "NotAllowedError");
            navigator.mediaDevices.getUserMedia = () => Promise.reject(refused);
        }"""
    )
    visitor.click("Use the camera", "#ask")
    visitor.see(".camera-message", "The browser does not allow the camera.")
    visitor.click("Close the camera", "#ask")
    visitor.see(".drop")


def slowly(visitor: Visitor, route: Any) -> None:
    """The first request is answered; the next one never is."""
    seen = visitor.page.locator(".answer:not([data-state=waiting])").count()
    if seen == 0:
        route.continue_()


@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_the_camera_is_asked_again_and_again(
    fresh: Served, visit: Callable[..., Visitor], phone: bool
) -> None:
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True} if phone else {}
    visitor = visit(fresh, **options)
    visitor.click("Use the camera", "#ask")
    visitor.see(".live", "lemon")
    visitor.see(".live .agree", "10 of the last 10 frames agree")
    visitor.click("Keep this image")
    visitor.answered()
    visitor.see(".answer", "lemon")
    visitor.go("tray")
    visitor.see(".tile", times=1)  # frames are not kept, but for the one that was
    visitor.go("ask")
    visitor.see(".drop")  # leaving has closed the camera
