"""``frugalvae serve`` in a process of its own, and a client that needs no package."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds after which something hangs


@dataclass
class Reply:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """Plain values."""
        return json.loads(self.content)


class Served:
    """A server on a free port of this machine; ``start`` and ``stop`` keep the port."""

    def __init__(
        self,
        file: Path,
        *options: object,
        how: Sequence[str] = ("-m", "frugalvae"),
        python: str = sys.executable,
        **environment: str,
    ) -> None:
        self.file, self.options = file, [*map(str, options)]
        self.port, self.log = 0, file.with_suffix(".log")
        self.headers: dict[str, str] = {}
        self._how, self._environment = [python, *how], {**os.environ, **environment}
        self.start()

    def start(self) -> None:
        """Come back when it listens."""
        words = ["serve", str(self.file), "--port", str(self.port), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._how, *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).parents[2],
                env=self._environment,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise SystemExit(f"the server does not start: {line}{self.log.read_text()}")
        self.port = int(line.rpartition(":")[2])

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

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
        """Ask without a body."""
        return self.ask("GET", path, None, headers)

    def post(self, path: str, fields: object = None, **headers: str) -> Reply:
        """Send JSON."""
        content = json.dumps({} if fields is None else fields).encode()
        return self.ask("POST", path, content, {"Content-Type": "application/json"} | headers)

    def send(self, path: str, images: Iterable[Path | bytes], **fields: str) -> Reply:
        """Send a form with pictures."""
        body, kind = form(images, fields)
        return self.ask("POST", path, body, {"Content-Type": kind})

    def raw(self, path: str, image: Path | bytes) -> Reply:
        """Send one picture as it is."""
        content = image if isinstance(image, bytes) else image.read_bytes()
        return self.ask("POST", path, content, {"Content-Type": "image/png"})

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, and wait for that; its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def close(self) -> None:
        """End it, however it is."""
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
