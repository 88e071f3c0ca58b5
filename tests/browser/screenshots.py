"""The pictures of the page in README and docs: ``python -m tests.browser.screenshots``."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from lab.benchmarks.fruit import FRUIT, draw
from PIL import Image

from tests.browser.conftest import find_browser
from tests.browser.serving import Served
from tests.browser.visitor import Visitor

DOCS = Path(__file__).parents[2] / "docs/_static"
NEW, TRAIN, TEST = "carrot", 8, 4
WINDOW = {"width": 1200, "height": 820}


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paint(folder)
        file = folder / "fruit.frugal"
        command = [sys.executable, "-m", "frugalvae", "learn", str(file), str(folder / "train")]
        subprocess.run(command, check=True)
        served = Served(file, "--teach")
        served.start()
        try:
            with sync_playwright() as playing:
                browser = playing.chromium.launch(
                    executable_path=find_browser(), args=["--no-sandbox"]
                )
                take(browser, served, folder / "test")
                browser.close()
        finally:
            served.kill()


def paint(folder: Path) -> None:
    """All fruit but one to teach, and some of each to ask."""
    rng = np.random.default_rng(4)
    for name in FRUIT:
        for split, count in (("train", 0 if name == NEW else TRAIN), ("test", TEST)):
            for number in range(count):
                path = folder / split / name / f"{name}-{number}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                draw(name, rng).save(path, quality=92)


def take(browser: Any, served: Served, pictures: Path) -> None:
    """Ask, and look at the classes."""
    context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
    visitor = Visitor(context.new_page(), served.address).open()
    visitor.choose("ask", pictures / "pear/pear-0.jpg", pictures / f"{NEW}/{NEW}-0.jpg")
    visitor.answered(2)
    visitor.choose("ask", pictures / "pear/pear-1.jpg")
    visitor.answered(3)
    save(visitor, "page-ask.png")
    visitor.go("classes")
    visitor.see("svg.map")
    save(visitor, "page-classes.png")


def save(visitor: Visitor, name: str) -> None:
    """Write what is seen, with as many colours as it needs."""
    visitor.page.mouse.move(0, 0)
    shot = Image.open(io.BytesIO(visitor.page.screenshot())).convert("RGB")
    shot.quantize(256, kmeans=3, dither=Image.Dither.NONE).save(DOCS / name, optimize=True)
    print(f"{DOCS / name}: {(DOCS / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
