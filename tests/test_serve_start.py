"""A server with the real encoder: what it imports, how soon it answers, and the demonstration."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.serving import Served

from tests.test_start import HEAVY, imported
from tests.test_start import photographs as photographs
from tests.waiting import needs_proc, worked

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.running import listen
from frugalvae.server.settings import Settings

FROM_START_TO_ANSWER = 1.5  # seconds
TELL = """
import atexit, sys
atexit.register(lambda: print(*sorted(name.split(".")[0] for name in sys.modules), file=sys.stderr))
from frugalvae.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_answers_do_not_wait_to_be_acknowledged() -> None:
    """Or the body of each answer comes 40 ms after its head."""
    with (
        listen(Settings(Path("birds.frugal"), port=0)) as opened,
        socket.create_connection(opened.getsockname()),
        opened.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@needs_proc
def test_it_answers_soon_and_without_heavy_packages(photographs: Path, tmp_path: Path) -> None:
    """Seconds are those that the process works, so that it does not matter how busy others are."""
    file = tmp_path / "colours.frugal"
    imported(["learn", file, photographs])
    served = Served(file, "--teach", how=("-c", TELL))
    try:
        [answer] = served.raw("/predict?unknown=1", photographs / "red/0.jpg").json["predictions"]
        seconds = worked(served.process.pid)
        told = served.send("/learn", [photographs / "blue/0.jpg"], name="sky").json
        served.get("/classes")
        assert served.stop() == 0
    finally:
        served.close()
    assert (answer["top"][0]["label"], told["label"]) == ("red", "sky")
    assert seconds < FROM_START_TO_ANSWER
    heavy = set(served.log.read_text().split()) & set(HEAVY)
    assert not heavy, f"serve imports {', '.join(sorted(heavy))}"


def test_the_demonstration_runs_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.serve_demo", "--once"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test pictures are named right" in done.stdout
    assert "the server has ended" in done.stdout


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    script = "import sys; sys.modules['uvicorn'] = None\nfrom frugalvae.cli.main import main\n"
    script += "raise SystemExit(main(sys.argv[1:]))"
    words = ["serve", str(tmp_path / "birds.frugal"), "--teach"]
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'frugalvae[serve]'" in done.stderr
