"""A server that is killed while it is asked and taught: what it answered is in the file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from lab.benchmarks.serve_kills import lost, mixed_with_kills
from PIL import Image

from tests.serving import Served

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")


def picture(number: int) -> bytes:
    buffer = io.BytesIO()
    shade = (number % 256, 40 * (number % 5), number // 256)
    Image.new("RGB", (8, 8), shade).save(buffer, "PNG")
    return buffer.getvalue()


def test_nothing_that_was_answered_with_success_is_lost(tmp_path: Path) -> None:
    served = Served(tmp_path / "birds.frugal", "--teach")
    try:
        tally, start, every = mixed_with_kills(served, picture, range(160), every=2.0), 160, 0.5
        while tally.kills < 3 or len(tally.learned) < 20:  # a machine may be quick, or busy
            more = mixed_with_kills(served, picture, range(start, start + 80), every)
            tally.kills += more.kills
            tally.learned |= more.learned
            tally.sent |= more.sent
            start, every = start + 80, every / 2 if tally.kills < 3 else 2 * every
        assert lost(served, tally) == []
        assert served.get("/health").json["status"] == "ok"
        assert served.stop() == 0
    finally:
        served.close()
    left = {path.name for path in tmp_path.iterdir()} - {"birds.log"}
    assert {"birds.frugal", "birds.frugal.undo"} <= left
