"""A server with the real encoder: what it imports, how soon it answers, and the demonstration."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lab.benchmarks.serving import Served

from tests.test_start import HEAVY, imported
from tests.test_start import photographs as photographs

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.running import listen
from frugalvae.server.settings import Settings

MODULES = 1000  # that may be imported; there are about 600
TELL = """
import atexit, json, sys
from frugalvae.cli.main import main
from frugalvae.encoders.onnx import Network

def opening(network, *given):
    opened.append(network)
    open_network(network, *given)

def tell():
    told = {"modules": sorted(sys.modules), "networks": len(opened)}
    print("told:", json.dumps(told), file=sys.stderr)

opened, open_network, Network._open = [], Network._open, opening
atexit.register(tell)
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


def test_it_answers_soon_and_without_heavy_packages(photographs: Path, tmp_path: Path) -> None:
    """What takes long is to import packages and to load the network: both are counted."""
    file = tmp_path / "colours.frugal"
    imported(["learn", file, photographs])
    served = Served(file, "--teach", how=("-c", TELL))
    try:
        [answer] = served.raw("/predict?unknown=1", photographs / "red/0.jpg").json["predictions"]
        told = served.send("/learn", [photographs / "blue/0.jpg"], name="sky").json
        served.get("/classes")
        assert served.stop() == 0
    finally:
        served.close()
    assert (answer["top"][0]["label"], told["label"]) == ("red", "sky")
    counted = json.loads(served.log.read_text().rpartition("told:")[2])
    heavy = {name.partition(".")[0] for name in counted["modules"]} & set(HEAVY)
    assert not heavy, f"serve imports {', '.join(sorted(heavy))}"
    assert len(counted["modules"]) < MODULES
    assert counted["networks"] == 1


def test_the_demonstration_runs_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab.benchmarks.serve_demo", "--once"]
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
    assert "pip install '.[serve]'" in done.stderr
