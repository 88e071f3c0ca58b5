"""The section "Teach"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.browser.serving import Served
from tests.browser.visitor import Visitor


def test_a_class_is_taught_and_undone(visitor: Visitor, pictures: Path) -> None:
    visitor.go("teach")
    visitor.click("Teach", "#teach form")
    visitor.see("#teach [role=alert]", "Type what they show.")
    visitor.type("What do they show?", "kiwi")
    visitor.click("Teach", "#teach form")
    visitor.see("#teach [role=alert]", "Add at least one photograph.")
    visitor.choose("teach", *sorted((pictures / "kiwi").iterdir()))
    visitor.find(".strip li").first.hover()
    remove = visitor.find("#teach .remove").first
    visitor.page.wait_for_function(
        "button => getComputedStyle(button).opacity === '1'", arg=remove.element_handle()
    )
    remove.click()
    visitor.click("Teach 5 photographs")
    visitor.see(".result-card .what", "It knows kiwi")
    visitor.see(".result-card", "5 photographs learned")
    visitor.see(".result-card", "3 → 4")
    visitor.see(".result-card", "Too few photographs were tested to say what it is confused with.")
    assert "kB →" in visitor.text(".result-card .facts")
    visitor.go("ask")
    visitor.choose("ask", pictures / "kiwi/kiwi-0.jpg")
    visitor.see(".answer .what", "kiwi")
    visitor.go("teach")
    visitor.click("Undo", ".result-card")
    visitor.miss(".result-card")
    visitor.see(".summary", "3 classes")


def test_after_a_lesson_one_can_go_on_with_the_class_or_take_it_back(
    visitor: Visitor, pictures: Path
) -> None:
    field = visitor.page.get_by_label("What do they show?")
    kiwis = sorted((pictures / "kiwi").iterdir())
    visitor.go("teach")
    visitor.type("What do they show?", "kiwi")
    visitor.press("Escape")
    visitor.choose("teach", *kiwis[:4])
    visitor.click("Teach 4 photographs")
    visitor.see(".result-card .what", "It knows kiwi")
    assert field.input_value() == ""
    visitor.miss(".strip li")
    visitor.click("Add photographs of kiwi")
    assert field.input_value() == "kiwi"
    assert visitor.focused() == "Choose photographs"
    visitor.choose("teach", *kiwis[4:])
    visitor.click("Teach 2 photographs")
    visitor.see(".result-card .what", "It knows more of kiwi")
    visitor.find(".side .button", "Undo").click()
    visitor.miss(".result-card")
    visitor.see(".strip li", times=2)  # to be taught as something else, or not all of them
    assert field.input_value() == "kiwi"
    visitor.click("Teach 2 photographs")
    visitor.see(".result-card", "2 photographs learned")


def test_what_cannot_be_read_is_named(visitor: Visitor, pictures: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes((pictures / "kiwi/kiwi-0.jpg").read_bytes()[:500])
    visitor.go("teach")
    visitor.type("What do they show?", "kiwi")
    visitor.press("Escape")
    visitor.choose("teach", broken, *sorted((pictures / "kiwi").iterdir())[:2])
    visitor.click("Teach 3 photographs")
    visitor.see(".result-card", "2 photographs learned, 1 cannot be read")
    visitor.see(".result-card .warn-text", "broken.jpg: ")


def test_known_names_are_offered(visitor: Visitor, pictures: Path) -> None:
    visitor.go("teach")
    visitor.type("What do they show?", "l")
    visitor.see("[role=option]", times=4)  # apple, lemon, plum, and "l" as a new class
    visitor.press("ArrowDown", "Enter")
    field = visitor.page.get_by_label("What do they show?")
    assert field.input_value() == "lemon"
    visitor.type("What do they show?", "Lemmon")
    visitor.press("Escape")
    visitor.see(".near", "Is it the same as “lemon”, which is known?")
    visitor.click("Use “lemon”")
    visitor.choose("teach", pictures / "lemon/lemon-0.jpg")
    visitor.click("Teach 1 photograph")
    visitor.see(".result-card", "Nothing new: all of these were taught before.")
    visitor.see(".strip li", times=1)  # which may be of another class
    assert field.input_value() == "lemon"


def test_a_dropped_folder_brings_its_name(visitor: Visitor) -> None:
    visitor.go("teach")
    visitor.page.evaluate(
        """() => {
            const file = (name, type) => ({
                isFile: true, file: (done) => done(new File(["x"], name, { type })),
            });
            const lists = [[file("1.jpg", "image/jpeg"), file("notes.txt", "text/plain")], []];
            const folder = {
                isDirectory: true, name: "kiwi",
                createReader: () => ({ readEntries: (done) => done(lists.shift()) }),
            };
            const drop = new Event("drop", { bubbles: true, cancelable: true });
            drop.dataTransfer = { files: [], items: [{ webkitGetAsEntry: () => folder }] };
            document.body.dispatchEvent(drop);
        }"""
    )
    visitor.see(".strip li", times=1)
    assert visitor.page.get_by_label("What do they show?").input_value() == "kiwi"


def test_the_camera_teaches_while_a_button_is_held(visitor: Visitor) -> None:
    visitor.go("teach")
    visitor.type("What do they show?", "citrus")
    visitor.click("Use the camera", "#teach")
    hold = visitor.see(".hold:enabled")
    hold.hover()
    visitor.page.mouse.down()
    visitor.see(".strip li:nth-child(3)")
    visitor.page.mouse.up()
    visitor.see(".hold:not(.held)")
    hold.focus()
    taken = visitor.find(".strip li").count()
    visitor.page.keyboard.down("Space")
    visitor.see(f".strip li:nth-child({taken + 2})")
    visitor.page.keyboard.up("Space")
    visitor.see(".hold:not(.held)")
    visitor.click("Close the camera", "#teach")
    visitor.find("#teach button[type=submit]").click()
    visitor.see(".result-card .what", "citrus")


def test_stopping_changes_nothing(visitor: Visitor, pictures: Path) -> None:
    visitor.go("teach")
    visitor.type("What do they show?", "all")
    visitor.choose("teach", *sorted(pictures.glob("*/*.jpg"))[:20])
    visitor.page.route("**/predict*", lambda _: None)  # it is never answered
    visitor.click("Teach 20 photographs")
    visitor.see("#teach progress")
    visitor.click("Stop", "#teach .progress-row")
    visitor.see(".notice", "Stopped. Nothing was changed.")
    visitor.see(".summary", "3 classes")
    visitor.see(".strip li", times=20)  # nothing that was chosen is lost
    assert visitor.page.get_by_label("What do they show?").input_value() == "all"


def test_without_teach_nothing_can_be_changed(
    serve: Callable[..., Served], visit: Callable[..., Visitor], pictures: Path
) -> None:
    visitor = visit(serve())
    visitor.see(".badge", "Asks only")
    visitor.choose("ask", pictures / "lemon/lemon-1.jpg")
    visitor.answered()
    visitor.miss(".answer .chip")
    visitor.go("teach")
    visitor.see("#teach", "This server answers, and cannot be taught.")
    visitor.see("#teach code", "frugalvae serve fruit.frugal --teach")
    visitor.miss("#teach form")
    visitor.go("classes")
    visitor.see(".class-row", times=3)
    visitor.miss(".class-row button")


def test_it_begins_with_nothing(
    serve: Callable[..., Served], visit: Callable[..., Visitor], pictures: Path, tmp_path: Path
) -> None:
    visitor = visit(serve("--teach", file=tmp_path / "new.frugal"))
    visitor.see(".summary", "Nothing was taught yet")
    visitor.click("Teach the first class")
    for name in ("kiwi", "pear"):
        visitor.type("What do they show?", name)
        visitor.press("Escape")
        visitor.choose("teach", *sorted((pictures / name).iterdir())[:5])
        visitor.click("Teach 5 photographs")
        visitor.see(".result-card .what", f"It knows {name}")
    visitor.click("Ask it")
    visitor.choose("ask", pictures / "kiwi/kiwi-5.jpg")
    visitor.see(".answer", "kiwi")
    visitor.find(".answer .chip", "pear").click()  # which is wrong
    visitor.see(".answer .learned", "Learned as pear")
    visitor.find(".side .button", "Undo").click()
    visitor.see(".notice", "Undone: Learned pear (1)")
    visitor.go("classes")
    visitor.see(".class-row", "5 samples", times=2)
    visitor.see(".facts", "not known yet")
    visitor.see(".caution", "Too few photographs were tested to say")
    visitor.page.reload()
    visitor.see(".class-row", "5 samples", times=2)
    visitor.miss(".notice", "Cannot read")


def test_the_first_lesson_is_undone_and_the_only_class_forgotten(
    serve: Callable[..., Served], visit: Callable[..., Visitor], pictures: Path, tmp_path: Path
) -> None:
    visitor = visit(serve("--teach", file=tmp_path / "new.frugal"), "teach")
    visitor.type("What do they show?", "kiwi")
    visitor.press("Escape")
    visitor.choose("teach", *sorted((pictures / "kiwi").iterdir())[:5])
    for again in range(2):
        visitor.click("Teach 5 photographs")
        visitor.see(".result-card .what", "It knows kiwi")
        if not again:
            visitor.click("Undo", ".result-card")
            visitor.see(".summary", "Nothing was taught yet")
    visitor.click("Ask it")
    visitor.choose("ask", pictures / "kiwi/kiwi-5.jpg")
    visitor.see(".answer", "The only class so far.")
    visitor.miss(".answer", "%")  # which would say nothing
    visitor.go("classes")
    visitor.click("Forget kiwi")
    visitor.click("Forget kiwi", ".row-form")
    visitor.see("#classes", "Nothing was taught yet")
    visitor.go("ask")
    visitor.see(".answer", "No class is known yet")
    visitor.find(".side .button", "Undo").click()
    visitor.see(".summary", "1 class")
    visitor.see(".answer", "The only class so far.")
