"""Clients that are slow on purpose, on real sockets: all others are answered meanwhile."""

from __future__ import annotations

import http.client
import io
import select
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from PIL import Image

from tests.serving import START, Served
from tests.test_limits import scans
from tests.tool import paint
from tests.waiting import PATIENCE, wait_until

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

#: The address of somebody else on this machine.
OTHER = "127.0.0.2"
SLOW = """
import sys, time
from pathlib import Path
from frugalvae import encoders
from tests.colours import Colours

class Slow(Colours):
    def encode(self, batch):  # white pictures take as long as a file is there
        while batch.mean() > 250 and Path(sys.argv[2] + ".gate").exists():
            Path(sys.argv[2] + ".begun").touch()
            time.sleep(0.01)
        return super().encode(batch)

encoders.make_encoder = lambda _, **__: Slow()
from frugalvae.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _has_two_addresses() -> None:
    with closing(socket.socket()) as one:
        try:
            one.bind((OTHER, 0))
        except OSError:
            pytest.skip(f"this machine has no address {OTHER}")


@contextmanager
def serving(folder: Path, *options: object, start: str = START) -> Iterator[Served]:
    """A server that was taught cats and daxes."""
    paint(folder, "cat", "dax", count=3)
    served = Served(folder / "birds.frugal", "--teach", *options)
    try:
        for name in ("cat", "dax"):
            assert served.send("/learn", (folder / name).glob("*"), name=name).status == 200
        served.stop()
        served._how[-1] = start
        served.start()
        yield served
    finally:
        served.close()


def asked(served: Served, path: str, image: bytes = b"", address: str = OTHER) -> tuple[int, bytes]:
    """What somebody at an address is answered: status and content."""
    with closing(
        http.client.HTTPConnection(
            "127.0.0.1", served.port, timeout=PATIENCE, source_address=(address, 0)
        )
    ) as connection:
        if not image:
            connection.request("GET", path)
        else:
            connection.request("POST", path, image, {"Content-Type": "image/png"})
        reply = connection.getresponse()
        return reply.status, reply.read()


def listens(port: int) -> bool:
    """Whether anything takes connections there."""
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (shade,) * 3).save(buffer, "PNG")
    return buffer.getvalue()


def head(path: str, length: int, *more: str) -> bytes:
    """The head of a request that brings a picture."""
    kind, size = "Content-Type: image/png", f"Content-Length: {length}"
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", kind, size, *more, "", ""]
    return "\r\n".join(lines).encode()


class Client:
    """A connection from the first address, which does as it likes."""

    def __init__(self, served: Served) -> None:
        self.socket = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
        self.got = b""

    def send(self, content: bytes) -> None:
        """Send that, if the server still listens."""
        with suppress(ConnectionError):
            self.socket.sendall(content)

    def wait(self) -> bool:
        """Whether there is more after some has come."""
        try:
            more = self.socket.recv(10_000)
        except ConnectionError:
            more = b""
        self.got += more
        return more != b""

    @property
    def status(self) -> int:
        """Of the answer; 0 if there is none."""
        return int(self.got[9:12] or 0)


@contextmanager
def clients(served: Served, count: int) -> Iterator[list[Client]]:
    """Many of them."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            found.append(Client(served))
            opened.enter_context(found[-1].socket)
        yield found


def test_600_half_heads_keep_nobody_else_out(tmp_path: Path) -> None:
    with serving(tmp_path, "--time-limit", "2") as served, clients(served, 600) as halves:
        for one in halves:
            one.send(b"GET /health HTTP/1.1\r\nHost: loc")
        for path in ("/health", "/", "/status"):
            assert asked(served, path)[0] == 200
        for one in halves:
            while one.wait():  # until it is closed, and none is kept
                pass
        statuses = Counter(one.status for one in halves)
        assert statuses[408] == 256  # half of four times the requests at a time
        assert set(statuses) <= {408, 429, 0}
        assert asked(served, "/status", address="127.0.0.1")[0] == 200


def test_bodies_byte_by_byte_keep_nobody_else_out(tmp_path: Path) -> None:
    options = ("--time-limit", "2", "--max-requests", "8")
    with serving(tmp_path, *options) as served, clients(served, 4) as slow:
        for one in slow:
            one.send(head("/predict", 1000, "Expect: 100-continue"))
        for one in slow:
            assert one.wait()
            assert one.status == 100  # it is worked on
        assert asked(served, "/status", address="127.0.0.1")[0] == 429
        assert asked(served, "/health", address="127.0.0.1")[0] == 200
        assert asked(served, "/status")[0] == 200
        left = slow
        while left:  # they go on after they are refused, until they are closed
            for one in left:
                one.send(b"x")
            ready = select.select([one.socket for one in left], [], [], 0.05)[0]
            left = [one for one in left if one.socket not in ready or one.wait()]
        assert all(b"HTTP/1.1 408" in one.got for one in slow)
        wait_until(lambda: asked(served, "/status", address="127.0.0.1")[0] == 200)


def test_100_photographs_of_many_scans_keep_nobody_else_out(tmp_path: Path) -> None:
    """They are refused before they are decoded, each of which took seconds."""
    bomb, dark = scans(350), picture(10)
    with serving(tmp_path, "--time-limit", "20") as served, clients(served, 100) as many:
        for one in many:
            one.send(head("/predict" if one in many[2:] else "/explain", len(bomb)) + bomb)
        for path in ("/predict", "/explain"):
            assert asked(served, path, dark)[0] == 200
        for one in many:
            assert one.wait()
        assert {one.status for one in many} <= {413, 429}
        refused = [one for one in many if one.status == 413]
        for one in refused:  # head and body may come apart
            while b"356 scans over" not in one.got:
                assert one.wait(), one.got
        assert asked(served, "/predict", dark, "127.0.0.1")[0] == 200


def test_100_slow_photographs_keep_nobody_else_out(tmp_path: Path) -> None:
    gate = tmp_path / "birds.frugal.gate"
    white, dark = picture(255), picture(10)
    with (
        serving(tmp_path, "--time-limit", "20", start=SLOW) as served,
        clients(served, 100) as slow,
    ):
        gate.touch()
        for one in slow:
            one.send(head("/predict" if one in slow[2:] else "/explain", len(white)) + white)
        waiting = {one.socket: one for one in slow}
        while len(waiting) > 64:  # half of the requests at a time
            for ready in select.select(list(waiting), [], [], PATIENCE)[0]:
                assert waiting[ready].wait()
                assert waiting.pop(ready).status == 429
        for address in (OTHER, "127.0.0.1"):
            assert asked(served, "/health", address=address)[0] == 200
            assert asked(served, "/", address=address)[0] == 200
        for path in ("/predict", "/explain"):
            assert asked(served, path, dark)[0] == 200
        gate.unlink()
        for one in waiting.values():
            assert one.wait()
            assert one.status == 200
        assert asked(served, "/predict", white, "127.0.0.1")[0] == 200


def test_the_second_signal_ends_it_although_a_photograph_takes_without_end(tmp_path: Path) -> None:
    white = picture(255)
    with serving(tmp_path, start=SLOW) as served, clients(served, 1) as [slow]:
        (tmp_path / "birds.frugal.gate").touch()
        slow.send(head("/predict", len(white)) + white)
        wait_until((tmp_path / "birds.frugal.begun").exists)
        served.process.terminate()
        wait_until(lambda: not listens(served.port))
        assert served.stop() == 0
