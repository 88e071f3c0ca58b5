"""The file that is served: when it is read, and when it is not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.storage.store import Store
from frugalvae.storage.summary import summarise
from tests.serving import in_a_loop

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.guard import RefusedError
from frugalvae.server.served import Served
from frugalvae.server.settings import Settings

Reads = list[str]


def taught(path: Path, seed: int = 0, names: str = "ab") -> Path:
    """A file that knows two classes."""
    x = np.random.default_rng(seed).normal(size=(20, 4)).astype(np.float32)
    y = np.repeat(list(names), 10)
    FrugalClassifier("gaussian-diagonal", random_state=0).partial_fit(x, y).save(path)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Names of files that are read from now on, but for what ``Store.save`` reads itself."""
    found: Reads = []
    read_bytes: Callable[[Path], bytes] = Path.read_bytes
    save = Store.save

    def read(path: Path) -> bytes:
        found.append(path.name)
        return read_bytes(path)

    def saved(*given: object, **named: object) -> None:
        before = list(found)
        save(*given, **named)  # type: ignore[arg-type]
        found[:] = before

    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(Store, "save", saved)
    return found


def test_what_it_has_written_itself_is_not_read_again(tmp_path: Path, reads: Reads) -> None:
    served = Served(Settings(taught(tmp_path / "birds.frugal"), teach=True))
    assert served.read() is not None
    reads.clear()
    snapshot = served.save(served.model_to_change().rename("a", "c"))
    assert served.read() is snapshot
    assert served.model_to_change() is snapshot.model
    assert reads == []
    assert snapshot.summary == summarise(served.store, snapshot.model)
    again = served.save(served.model_to_change().rename("c", "d"))
    assert again.summary == summarise(served.store, again.model)
    assert again.revision != snapshot.revision
    served.close()


def test_a_new_file_is_not_read_after_its_first_lesson(tmp_path: Path, reads: Reads) -> None:
    model = FrugalClassifier.load(taught(tmp_path / "other.frugal")).model_
    served = Served(Settings(tmp_path / "birds.frugal", teach=True))
    reads.clear()
    snapshot = served.save(model)
    assert served.read() is snapshot
    assert reads == []
    assert snapshot.summary == summarise(served.store, model)
    served.close()


@pytest.mark.parametrize("how", ["other file", "in place"])
def test_a_file_of_equal_size_is_noticed(tmp_path: Path, how: str) -> None:
    """By its inode if only that differs, and by its time if only that does."""
    file = taught(tmp_path / "birds.frugal")
    other = taught(tmp_path / "other.frugal", names="ef")
    assert file.stat().st_size == other.stat().st_size
    served = Served(Settings(file))
    first = served.read()
    assert first is not None
    time = file.stat().st_mtime_ns
    if how == "other file":
        os.utime(other, ns=(time, time))
        os.replace(other, file)
    else:
        file.write_bytes(other.read_bytes())
        os.utime(file, ns=(time + 1, time + 1))
    second = served.read()
    assert second is not None
    assert second.model.classes.tolist() == ["e", "f"]
    assert second.revision != first.revision
    assert not served.is_current((*first.stamp[:2], first.stamp[2] + 1))
    served.close()


def test_a_file_that_has_not_changed_is_read_once(tmp_path: Path, reads: Reads) -> None:
    served = Served(Settings(taught(tmp_path / "birds.frugal")))
    first = served.read()
    reads.clear()
    assert served.read() is first
    assert reads == []
    served.close()


# --------------------------------------------------------------------------- a full disk


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from frugalvae.server.app import create_app
    from frugalvae.storage import model_file

    file = taught(tmp_path / "birds.frugal")
    before = file.read_bytes()
    app = create_app(Settings(file, teach=True))
    monkeypatch.setattr(app.state.server, "warm_up", lambda: None)
    with TestClient(app, "http://localhost") as client:
        with monkeypatch.context() as patched:
            patched.setattr(model_file, "write_bytes", full)
            reply = client.post("/rename", json={"from": "a", "to": "c"})
        why = reply.json()["error"]
        assert (reply.status_code, "there is no room to write it" in why) == (507, True)
        assert file.read_bytes() == before
        assert str(tmp_path) not in why
        assert client.post("/rename", json={"from": "a", "to": "c"}).status_code == 200


def test_a_picture_that_there_is_no_room_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frugalvae.server import app

    kept = app.ServerState(Settings(tmp_path / "a.frugal", teach=True, keep=tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(app, "write_bytes", full)
        with pytest.raises(RefusedError, match="no room for the image in the folder") as refused:
            in_a_loop(kept.keep(b"picture", b"five"))
    assert refused.value.status == 507
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(app, "write_bytes", lambda path, _: path.rmdir())  # fails otherwise
        with pytest.raises(FileNotFoundError):
            in_a_loop(kept.keep(b"picture", b"five"))
    kept.close()
