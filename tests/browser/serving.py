"""A server process of the command line, on a port that stays the same when it is started again."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.waiting import wait_until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """``frugalvae serve``, which can be killed and started again."""

    def __init__(self, file: Path, *options: str) -> None:
        self.file, self.options, self.port = file, options, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Come back when it answers."""
        command = [sys.executable, "-m", "frugalvae", "serve", str(self.file)]
        command += ["--port", str(self.port), *self.options]
        with self.file.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.answers)

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.file.with_suffix(".log").read_text()
        try:
            with urlopen(f"{self.address}health", timeout=10) as response:
                return bool(response.status == 200)
        except HTTPError as error:
            error.close()
            return error.code == 401
        except (URLError, ConnectionError, TimeoutError):
            return False

    def post(self, path: str) -> None:
        """Ask it for something that needs no more than asking."""
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(self.address + path, b"{}", headers), timeout=600):
            pass

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def tool(self, verb: str, *words: object) -> str:
        """What the command line does to the same file meanwhile."""
        command = [sys.executable, "-m", "frugalvae", verb, str(self.file), *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
