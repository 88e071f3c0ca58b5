"""``frugalvae serve`` in a process of its own, and a client that talks to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE, wait_until

#: Where the server is told to look for its encoder: one of colours, which needs no network.
START = """
import sys
from frugalvae.encoders import remembered
from tests.colours import Colours
remembered.make_frozen = lambda _, **__: Colours()
from frugalvae.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


@dataclass
class Reply:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Served:
    """A server on a free port of this machine; ``colours`` is an encoder that is quick."""

    def __init__(self, file: Path, *options: object, colours: bool = True) -> None:
        self.file, self.options, self.colours = file, [*map(str, options)], colours
        self.port, self.log = 0, file.with_suffix(".log")
        self.headers: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        """Come back when it listens; again on the same port."""
        how = ["-c", START] if self.colours else ["-m", "frugalvae"]
        words = ["serve", str(self.file), "--port", str(self.port), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *how, *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).parents[1],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, line + self.log.read_text()
        self.port = int(line.rpartition(":")[2])

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, fields: object = None, **headers: str) -> Reply:
        """JSON."""
        content = json.dumps({} if fields is None else fields).encode()
        return self.ask("POST", path, content, {"Content-Type": "application/json"} | headers)

    def send(self, path: str, images: Iterable[Path | bytes], **fields: str) -> Reply:
        """A form with pictures."""
        body, kind = form(images, fields)
        return self.ask("POST", path, body, {"Content-Type": kind})

    def raw(self, path: str, image: Path, kind: str = "image/png") -> Reply:
        """One picture as it is."""
        return self.ask("POST", path, image.read_bytes(), {"Content-Type": kind})

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, and wait for that; its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)


def form(images: Iterable[Path | bytes], fields: Mapping[str, str]) -> tuple[bytes, str]:
    """A form as browsers send it, and its content type."""
    edge = uuid.uuid4().hex
    parts = []
    for name, value in fields.items():
        parts.append(f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode())
    for number, image in enumerate(images):
        called = image.name if isinstance(image, Path) else f"{number}.png"
        content = image.read_bytes() if isinstance(image, Path) else image
        head = f'Content-Disposition: form-data; name="images"; filename="{called}"\r\n'
        parts.append(f"{head}Content-Type: image/png\r\n\r\n".encode() + content)
    body = b"".join(f"--{edge}\r\n".encode() + part + b"\r\n" for part in parts)
    return body + f"--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def when_ready(served: Served) -> Served:
    wait_until(lambda: served.get("/health").status == 200)
    return served
