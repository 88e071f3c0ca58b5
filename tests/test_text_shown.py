"""Names from files and folders are text: a terminal shows them, and obeys nothing in them."""

from __future__ import annotations

import pytest

from frugalvae.console import Display
from frugalvae.formatting import printable, printable_message
from tests.tool import Tool


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/] ü 鳥", "plain [bold]text[/] ü 鳥"),
        ("a\nb\tc\r\0", "a\\nb\\tc\\r\\x00"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m\u202e\u2066\u200f", "\\x9b31m\\u202e\\u2066\\u200f"),
        ("\u2028\u2029\ufeff", "\\u2028\\u2029\\ufeff"),
        ("caf\udce9 \ud800", "caf\\xe9 \\ud800"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),  # Persian needs its joiners
        ("👩\u200d🔬\u3000", "👩\u200d🔬\u3000"),
    ],
)
def test_what_would_steer_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    listed = f"cannot be read:\n  {text}\n  {text}"
    assert printable_message(listed) == f"cannot be read:\n  {shown}\n  {shown}"


def test_a_display_shows_text_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display()
    display.say("cat[/x] [red]:smile: \x1b[2J\u202e")
    display.table("[b]title", ["[i]name", "n"], [["cat[/x]", "two\nlines"]])
    shown = capsys.readouterr().out
    assert shown.startswith("cat[/x] [red]:smile: \\x1b[2J\\u202e\n")
    for text in ("[b]title", "[i]name", "cat[/x]", "two\\nlines"):
        assert text in shown


def test_errors_show_names_as_text(taught: Tool) -> None:
    for name in ("a\x1b[2J.png", "\u2067b.png", "two\nlines.png"):
        (taught.folder / name).touch()
        error = taught("predict", taught.folder / name, code=1)
        assert error.rstrip("\n").isprintable()
        assert "cannot be read: the file is empty" in error
    for words in (["status"], ["undo"], ["forget", "\x1b[2J"], ["predict", "\x1b[2J"]):
        file = taught.file
        if len(words) == 1:
            taught.file = taught.folder / "\x1b[2J.frugal"
        error = taught(*words, code=2)
        assert "\\x1b[2J" in error
        assert "\x1b" not in error
        taught.file = file
