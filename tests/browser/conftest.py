"""A browser, a taught file, a server process, and somebody who looks at the page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab.benchmarks.fruit import draw

from tests.browser.serving import Served
from tests.browser.visitor import Visitor

TAUGHT, OTHERS, EACH = ("apple", "lemon", "plum"), ("cherry", "kiwi", "pear"), 6
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)} is installed")
    return found


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of drawn fruit, ``KIND/KIND-NUMBER.jpg``; ``asked/KIND.jpg`` are never taught."""
    root, rng = tmp_path_factory.mktemp("fruit"), np.random.default_rng(0)
    for name in (*TAUGHT, *OTHERS):
        (root / name).mkdir()
        for number in range(EACH):
            draw(name, rng).save(root / name / f"{name}-{number}.jpg")
    (root / "asked").mkdir()
    for name in TAUGHT:
        draw(name, rng).save(root / f"asked/{name}.jpg")
    return root


@pytest.fixture(scope="session")
def browser(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, whose camera sees a lemon."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the page is tested with Playwright, which is not installed"
    )
    executable = find_browser()
    camera = tmp_path_factory.mktemp("camera") / "lemon.mjpeg"
    camera.write_bytes((pictures / "lemon/lemon-0.jpg").read_bytes() * 3)
    arguments = [
        "--no-sandbox",
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={camera}",
    ]
    with playwright.sync_playwright() as playing:
        started = playing.chromium.launch(executable_path=executable, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def taught_file(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that was taught three kinds of fruit."""
    folder = tmp_path_factory.mktemp("taught")
    for name in TAUGHT:
        shutil.copytree(pictures / name, folder / "train" / name)
    file = folder / "fruit.frugal"
    command = [sys.executable, "-m", "frugalvae", "learn", str(file), str(folder / "train")]
    subprocess.run(command, check=True, capture_output=True)
    return file


@pytest.fixture
def serve(browser: Any, taught_file: Path, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a server with a copy of the file, and with these options."""
    started: list[Served] = []

    def start(*options: str, file: Path | None = None) -> Served:
        if file is None:
            file = Path(shutil.copy(taught_file, tmp_path))
        started.append(Served(file, *options))
        started[-1].start()
        return started[-1]

    yield start
    for served in started:
        served.kill()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Open the page of a server in a window of its own; no error may remain in its console."""
    visitors: list[Visitor] = []

    def make(served: Served, section: str = "ask", **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        visitors.append(Visitor(context.new_page(), served.address))
        return visitors[-1].open(section)

    yield make
    for visitor in visitors:
        visitor.page.unroute_all(behavior="ignoreErrors")  # the page may just be asking
        visitor.page.context.close()
    assert [problem for visitor in visitors for problem in visitor.problems] == []


@pytest.fixture(scope="session")
def lasting(taught_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that may be taught, for one test after the other."""
    file = Path(shutil.copy(taught_file, tmp_path_factory.mktemp("lasting")))
    served = Served(file, "--teach")
    served.start()
    yield served
    served.kill()


@pytest.fixture
def fresh(browser: Any, lasting: Served, taught_file: Path, tmp_path: Path) -> Served:
    """The same, as if it had just been started."""
    for left in lasting.file.parent.glob(".*"):
        left.unlink()
    Path(shutil.copy(taught_file, tmp_path)).replace(lasting.file)
    lasting.post("recent/clear")
    return lasting


@pytest.fixture
def visitor(fresh: Served, visit: Callable[..., Visitor]) -> Visitor:
    """Somebody at the page of a server that may be taught."""
    return visit(fresh)
