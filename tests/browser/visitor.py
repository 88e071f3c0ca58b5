"""Somebody who uses the page: finds what can be seen, clicks, types, and waits for what follows."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

PATIENCE = (
    int(os.environ.get("FRUGALVAE_PATIENCE", 120)) * 1000
)  # milliseconds, for a machine that does other things as well

#: What a browser says of a server that does not answer, or refuses.
EXPECTED = ("Failed to load resource", "net::ERR")


class Visitor:
    """A tab with the page; ``problems`` has all errors that the browser reports."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.problems: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._listen)
        page.on("filechooser", lambda _: None)  # so that none is opened outside of the page

    def _listen(self, message: Any) -> None:
        expected = any(text in message.text for text in EXPECTED)
        if message.type == "error" and not expected:
            self.problems.append(message.text)

    def open(self, section: str = "ask") -> Visitor:
        """The page, after it has heard from the server."""
        self.page.goto(self.address if section == "ask" else f"{self.address}#{section}")
        self.see(".file bdi")
        return self

    def go(self, section: str) -> None:
        self.page.click(f"nav a[href='#{section}']")
        self.see(f"#{section}")

    # ------------------------------------------------------------ seeing

    def find(self, selector: str, text: str | None = None) -> Any:
        """What can be seen."""
        found = self.page.locator(selector).filter(visible=True)
        return found if text is None else found.filter(has_text=text)

    def see(self, selector: str, text: str | None = None, *, times: int | None = None) -> Any:
        """Wait until it can be seen, as often as that; what is seen."""
        from playwright.sync_api import expect

        found = self.find(selector, text)
        if times is None:
            expect(found.first).to_be_visible(timeout=PATIENCE)
        else:
            expect(found).to_have_count(times, timeout=PATIENCE)
        return found

    def miss(self, selector: str, text: str | None = None) -> None:
        """Wait until it cannot be seen any more."""
        self.see(selector, text, times=0)

    def text(self, selector: str) -> str:
        return str(self.see(selector).first.inner_text())

    def focused(self) -> str:
        """What has the focus, as a screen reader would call it."""
        script = "e => e.getAttribute('aria-label') ?? e.labels?.[0]?.innerText ?? e.innerText"
        return str(self.page.locator(":focus").evaluate(script)).strip()

    # ------------------------------------------------------------ doing

    def click(self, name: str, within: str = "body") -> None:
        """Click the button or link of this name."""
        place = self.page.locator(within).filter(visible=True).first
        buttons = place.get_by_role("button", name=name, exact=True)
        links = place.get_by_role("link", name=name, exact=True)
        buttons.or_(links).filter(visible=True).first.click()

    def type(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).filter(visible=True).first.fill(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def choose(self, section: str, *files: Path) -> None:
        """Choose files in the dialog of the browser."""
        with self.page.expect_file_chooser() as chooser:
            self.click("Choose photographs", f"#{section}")
        chooser.value.set_files(files)

    def give(self, event: str, *files: Path) -> None:
        """Drop or paste files."""
        contents = [base64.b64encode(file.read_bytes()).decode() for file in files]
        self.page.evaluate(
            """async ([event, names, contents]) => {
                const data = new DataTransfer();
                for (const [place, name] of names.entries()) {
                    const bytes = Uint8Array.from(atob(contents[place]), (c) => c.charCodeAt(0));
                    data.items.add(new File([bytes], name, { type: "image/jpeg" }));
                }
                const how = { bubbles: true, cancelable: true };
                const made = event === "paste"
                    ? new ClipboardEvent("paste", { clipboardData: data, ...how })
                    : new DragEvent("drop", { dataTransfer: data, ...how });
                document.body.dispatchEvent(made);
            }""",
            [event, [file.name for file in files], contents],
        )

    def answered(self, times: int = 1) -> Any:
        """The cards with an answer, when there are so many."""
        return self.see(".answer:not([data-state=waiting])", times=times)
