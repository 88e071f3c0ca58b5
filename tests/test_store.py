"""A classifier's file: what is written where, flushed, swept and read, and how much of it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.encoding import Parts
from frugalvae.errors import (
    BusyError,
    FrugalError,
    InputError,
    MemoryFileError,
    UntrustedError,
)
from frugalvae.files import locked, sync_folder, unfinished, write_bytes
from frugalvae.model.confidence import TaughtNovelty
from frugalvae.model.forgetting import forget
from frugalvae.storage import model_file
from frugalvae.storage import store as store_module
from frugalvae.storage.model_file import from_bytes, to_bytes
from frugalvae.storage.store import BLOCK, FULL, QUANTILES, Store, _same, receipt, size_and_checksum
from tests.conftest import blobs
from tests.fuzzing import sign
from tests.outside import MeanMemory

MIDDLE: Any = {"first": np.arange(3, dtype="<i4"), "second": np.ones((2, 2), "<i2")}


def taught(count: int = 10) -> FrugalClassifier:
    task = blobs([0, 1], dim=4, per_class=count)
    return FrugalClassifier("gaussian-diagonal", "nearest-mean").fit(task.features, task.labels)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    taught().save(tmp_path / "birds.frugal")
    return tmp_path / "birds.frugal"


# --------------------------------------------------------------------------- bytes


def test_bytes_after_the_tensors_are_refused(file: Path) -> None:
    """With a checksum that fits: or what somebody hides there would be carried along."""
    content = file.read_bytes()
    for more in (b"\0", b"x" * 4096):
        file.write_bytes(sign(content + more))
        with pytest.raises(MemoryFileError, match="it has more bytes than its tensors"):
            FrugalClassifier.load(file)
        file.write_bytes(sign(content[:-1]))
        with pytest.raises(MemoryFileError, match="is not of the size that is there"):
            FrugalClassifier.load(file)


def with_header(change: Any) -> bytes:
    """A container whose header says otherwise, with a checksum that fits."""
    content = to_bytes({"a": 1}, MIDDLE)
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    change(header)
    encoded = json.dumps(header).encode()
    return sign(struct.pack("<Q", len(encoded)) + encoded + content[8 + size :])


def test_arrays_come_back_and_lie_one_after_the_other() -> None:
    document, arrays = from_bytes(with_header(lambda _: None))
    assert document["a"] == 1
    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: array.tolist() for name, array in MIDDLE.items()
    }
    assert not arrays["first"].flags.writeable  # views of the bytes


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("first", {"dtype": "I32", "shape": [2**62, 2**62], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [3], "data_offsets": [-12, 0]}),
        ("first", {"dtype": "I4", "shape": [3], "data_offsets": [0, 12]}),
        ("first", {"dtype": "F64", "shape": [3], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [2], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [3], "data_offsets": [1, 13]}),
        ("first", {"dtype": "I32", "shape": [3], "data_offsets": [12, 0]}),
        ("first", {"dtype": "I32", "shape": [-3], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [3.0], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [3, True], "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [3] + [1] * 8, "data_offsets": [0, 12]}),
        ("first", {"dtype": "I32", "shape": [10**9, 0], "data_offsets": [0, 0]}),
        ("second", {"dtype": "I16", "shape": [2, 2], "data_offsets": [12, 21]}),
        ("second", {"dtype": "I16", "shape": [2, 3], "data_offsets": [12, 24]}),
        ("second", None),
        ("second", {"dtype": "I16", "shape": [2, 2]}),
    ],
)
def test_tensors_that_are_not_there_are_refused(name: str, about: Any) -> None:
    with pytest.raises(MemoryFileError, match=f"its tensor '({name}|second)' (is not|has a shape)"):
        from_bytes(with_header(lambda header: header.update({name: about})))


def test_a_digest_of_zeros_elsewhere_stays_as_it_is() -> None:
    document = {"encoder": {"sha256": "0" * 64}}
    assert (
        from_bytes(to_bytes(document, MIDDLE))[0] | document
        == from_bytes(to_bytes(document, MIDDLE))[0]
    )


def test_a_gap_between_tensors_is_refused() -> None:
    def without_first(header: Any) -> None:
        del header["first"]

    with pytest.raises(MemoryFileError, match="its tensor 'second' is not of the size"):
        from_bytes(with_header(without_first))


def test_eight_axes_are_as_many_as_a_tensor_has() -> None:
    eight = np.ones((1,) * 8, np.float32)
    assert from_bytes(to_bytes({}, {"x": eight}))[1]["x"].shape == (1,) * 8


@pytest.mark.parametrize("digest", ["", None, "0" * 64, "x"])
def test_no_checksum_stands_for_the_right_one(digest: Any) -> None:
    """Whatever stands there, and however it is spaced."""
    content = to_bytes({"a": 1}, MIDDLE)
    size = struct.unpack("<Q", content[:8])[0]
    for separators in ((",", ":"), (", ", ": ")):
        header = json.loads(content[8 : 8 + size])
        document = json.loads(header["__metadata__"]["frugalvae"]) | {"sha256": digest}
        header["__metadata__"]["frugalvae"] = json.dumps(document, separators=separators)
        encoded = json.dumps(header).encode()
        forged = struct.pack("<Q", len(encoded)) + encoded + content[8 + size :]
        with pytest.raises(MemoryFileError, match="its checksum does not fit"):
            from_bytes(forged)


def headed(size: int, claimed: int) -> bytes:
    """A file without tensors whose header has a size, and claims one."""
    header = json.dumps(
        {"__metadata__": {"frugalvae": json.dumps({"sha256": "0" * 64, "format": 3, "a": 1})}}
    )
    return sign(struct.pack("<Q", claimed) + header.encode().ljust(size))


def test_a_header_is_as_long_as_it_says_and_no_longer_than_it_may_be() -> None:
    for size in (1000, 2**25):
        assert from_bytes(headed(size, size))[0]["a"] == 1
    for size, claimed in ((2**25 + 1,) * 2, (1000, 1001), (1000, 1010), (1000, 1000 + (1 << 56))):
        with pytest.raises(MemoryFileError, match="it is not a .frugal file"):
            from_bytes(headed(size, claimed))


@pytest.mark.parametrize(
    "dtype", ["?", *(f"{kind}{n}" for kind in "iu" for n in (1, 2, 4, 8)), "f4", "f8"]
)
def test_arrays_of_every_type_come_back(dtype: str) -> None:
    array = np.array([0, 1], dtype)
    found = from_bytes(to_bytes({}, {"x": array, "empty": array[:0]}))[1]
    assert (found["x"].dtype, found["x"].tolist()) == (array.dtype, array.tolist())
    assert found["empty"].shape == (0,)


@pytest.mark.parametrize(
    ("shape", "offsets", "right"),
    [
        ([10, 0], [5, 5], True),
        ([11, 0], [5, 5], False),
        ([0, -1], [5, 5], False),
        ([0], [1, 0], False),
        ([0], [-1, 0], False),
        ([0], [0, 0], True),
    ],
)
def test_no_side_is_longer_than_the_file(shape: Any, offsets: Any, right: bool) -> None:
    about = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
    if right:
        assert model_file._table_row("x", about, 10)[1:3] == (tuple(offsets), tuple(shape))
        return
    with pytest.raises(MemoryFileError, match="its tensor 'x' has a shape or a type that no"):
        model_file._table_row("x", about, 10)


def test_a_document_has_finite_numbers() -> None:
    for value in (float("nan"), float("inf"), object()):
        with pytest.raises(InputError, match="^encoder_ or history_ cannot be written as JSON"):
            to_bytes({"a": value}, {})


# --------------------------------------------------------------------------- how much is read


def test_saving_does_not_read_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it.frugal"
    taught().save(path)
    store, model = Store(path), taught(12).model_
    whole = Path.read_bytes

    def refuse(self: Path) -> bytes:
        raise AssertionError(f"all of {self} is read")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    store.save(model)
    monkeypatch.setattr(Path, "read_bytes", whole)
    assert FrugalClassifier.load(path).n_samples_of_class_.tolist() == [12, 12]


# --------------------------------------------------------------------------- flushed to disk


class Disk:
    """What was flushed and renamed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        flush, rename = os.fsync, os.replace

        def fsync(descriptor: int) -> None:
            found = os.fstat(descriptor)
            folder = stat.S_ISDIR(found.st_mode)
            self.done.append("folder" if folder else f"{found.st_size} bytes")
            flush(descriptor)

        def replace(old: Any, new: Any) -> None:
            self.done.append(f"-> {Path(new).name}")
            rename(old, new)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "replace", replace)


def test_a_file_is_flushed_before_it_is_renamed_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or after a power cut there may be a file without its content, or none."""
    disk = Disk(monkeypatch)
    write_bytes(tmp_path / "it", b"seven b")
    assert disk.done == ["7 bytes", "-> it", "folder"]
    disk.done.clear()
    sync_folder(tmp_path)
    assert disk.done == ["folder"]


def test_a_change_and_an_undo_are_flushed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, disk = Store(file), Disk(monkeypatch)
    store.save(taught(12).model_)
    written = f"{file.stat().st_size} bytes"
    undo = "-> birds.frugal.undo"
    assert disk.done == [written, "-> birds.frugal", "folder", undo, "folder"]
    disk.done.clear()
    store.go_back()
    assert disk.done == ["-> birds.frugal", "folder"]


# --------------------------------------------------------------------------- what is left


def left_by_another(file: Path, seconds: float) -> Path:
    """What another process is writing, or was killed while it wrote so long ago."""
    path = file.with_name(f".frugalvae-unfinished-{file.name}.0123abcd")
    path.write_bytes(b"unfinished")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


@pytest.mark.parametrize(("seconds", "swept"), [(0, False), (60, False), (61, True)])
def test_an_unfinished_file_is_swept_once_nobody_can_be_writing_it(
    file: Path, seconds: float, swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 2e9)
    path = left_by_another(file, seconds)
    with Store(file).changing("a test", wait=0):
        assert path.exists() is not swept
    assert [found.name for found in unfinished(file)] == ([] if swept else [path.name])


def test_what_may_hold_samples_is_swept_at_any_age(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_another(file, 0)
    Parts(file, {"images": "0"}).open()
    Store(file).save(taught(11).model_)
    disk = Disk(monkeypatch)
    Store(file).save(taught(12).model_, undoable=False)
    assert [found.name for found in file.parent.iterdir()] == [file.name]
    assert disk.done.count("folder") == 2, "before the file is replaced, and after"


@pytest.mark.parametrize("any_age", [False, True])
def test_a_file_that_another_has_finished_meanwhile_is_not_swept(
    file: Path, any_age: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = file.with_name("gone")
    monkeypatch.setattr(store_module, "unfinished", lambda _: [gone])
    Store(file)._sweep(any_age)


def test_only_files_of_that_name_are_swept(file: Path) -> None:
    other = left_by_another(file.with_name("other.frugal"), 1000)
    short = file.with_name(f".frugalvae-unfinished-{file.name}.0123abc")
    short.write_bytes(b"")
    os.utime(short, (0, 0))
    with Store(file).changing("a test", wait=0):
        pass
    assert other.exists()
    assert short.exists()


# --------------------------------------------------------------------------- changing


def test_who_waits_is_told_who_has_the_lock(file: Path) -> None:
    with locked(file, "learn", 0), pytest.raises(BusyError) as caught:
        Store(file).changing("update", wait=0).__enter__()
    assert f"{file} is being changed by process {os.getpid()} ('learn', since" in str(caught.value)
    assert "wait longer than 0 s with --wait SECONDS" in str(caught.value)
    assert not file.with_name(f".{file.name}.lock").exists()


def test_there_is_one_step_back_and_it_is_said_when_there_is_none(file: Path) -> None:
    before, store = file.read_bytes(), Store(file)
    with pytest.raises(InputError, match="there is nothing to undo; birds.frugal.undo is not"):
        store.read_undo()
    store.save(taught(12).model_)
    after = file.read_bytes()
    assert store.undo.read_bytes() == before
    assert store.read_undo().document["n_samples_of_class"] == [10, 10]
    store.go_back()
    assert file.read_bytes() == before != after
    assert not store.undo.exists()


def test_a_change_that_was_killed_is_finished_or_taken_back(file: Path) -> None:
    store, content = Store(file), file.read_bytes()
    before = file.with_name(f".{file.name}.before")
    before.write_bytes(content)  # nothing was replaced yet
    with store.changing("a test", wait=0):
        pass
    assert not before.exists()
    assert not store.undo.exists()
    before.write_bytes(b"what it was")  # the file was replaced, and nothing more
    with store.changing("a test", wait=0):
        pass
    assert store.undo.read_bytes() == b"what it was"
    assert file.read_bytes() == content


@pytest.mark.parametrize("name", ["{}.undo", ".{}.before"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_in_the_way(file: Path, name: str, make: Any) -> None:
    content, beside = file.read_bytes(), file.with_name(name.format(file.name))
    make(beside)
    with (
        pytest.raises(InputError, match="is in the way"),
        Store(file).changing("a test", wait=0),
    ):
        pytest.fail("it is not in the way")
    assert (file.read_bytes(), beside.is_file()) == (content, False)


def test_a_change_whose_file_is_gone_can_be_undone(file: Path) -> None:
    store, before = Store(file), file.with_name(f".{file.name}.before")
    file.rename(before)
    with store.changing("a test", wait=0):
        pass
    assert [found.name for found in file.parent.iterdir()] == [store.undo.name]


@pytest.mark.parametrize("undoable", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_a_change_that_fails_leaves_what_there_was(
    there: bool, undoable: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not there:
        file.unlink()
    content = file.read_bytes() if there else None
    plain = model_file.save

    def fail(model: Any, path: Path, *dtype: str) -> None:
        if path == file:
            raise RuntimeError("a fault")
        plain(model, path, *dtype)

    monkeypatch.setattr(model_file, "save", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        Store(file).save(taught(12).model_, undoable=undoable)
    assert [found.read_bytes() for found in file.parent.iterdir()] == ([content] if there else [])


def test_the_first_step_can_be_undone(tmp_path: Path) -> None:
    store = Store(tmp_path / "it.frugal")
    store.save(taught().model_)
    assert store.read_undo().document["classes"]["values"] == []
    store.go_back()
    assert not len(store.load(empty=True).classes)


def test_undo_keeps_who_may_read_the_file(file: Path) -> None:
    store = Store(file)
    store.save(taught(12).model_)
    file.chmod(0o640)
    store.undo.chmod(0o600)
    store.go_back()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_copy_is_kept_where_a_file_can_have_no_second_name(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    file.chmod(0o640)
    content, store = file.read_bytes(), Store(file)
    store.save(taught(12).model_)
    assert store.undo.read_bytes() == content
    assert stat.S_IMODE(store.undo.stat().st_mode) == 0o640


def test_a_file_that_cannot_be_changed_is_told_before_the_work(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="the folder .* does not exist; make it first"):
        Store(file.parent / "nowhere" / "it.frugal").changing("a test", wait=0).__enter__()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=f"^{file} is write-protected, and is as it was"):
        Store(file).changing("a test", wait=0).__enter__()


@pytest.mark.parametrize("code", FULL)
def test_a_full_disk_is_told_and_other_faults_go_through(code: int, file: Path) -> None:
    with (
        pytest.raises(FrugalError, match=f"^{file}: there is no room to write it"),
        Store(file).changing("a test", wait=0),
    ):
        raise OSError(code, "full")
    with pytest.raises(PermissionError), Store(file).changing("a test", wait=0):
        raise PermissionError(errno.EACCES, "not yours")


def test_a_damaged_file_is_told_with_the_way_back(file: Path) -> None:
    store, damaged = Store(file), file.read_bytes()[:-1]
    file.write_bytes(damaged)
    with pytest.raises(MemoryFileError, match="another copy, or save the classifier again$"):
        store.load()
    store.undo.write_bytes(damaged)
    with pytest.raises(MemoryFileError, match=f"; 'frugalvae undo {file}' goes back to what"):
        store.load()


def test_parts_from_outside_are_loaded_where_the_store_trusts_them(tmp_path: Path) -> None:
    path = tmp_path / "it.frugal"
    for count in (20, 21):
        task = blobs([0, 1], dim=4, per_class=count)
        classifier = FrugalClassifier(MeanMemory(), "nearest-mean")
        Store(path).save(classifier.fit(task.features, task.labels).model_)
    trusting = Store(path, trust=["tests.outside"])
    assert type(trusting.load().memory) is MeanMemory
    assert trusting.read_undo().document["n_samples_of_class"] == [20, 20]
    for act in (Store(path).load, Store(path).read_undo):
        with pytest.raises(UntrustedError) as caught:  # which going back would not mend
            act()
        assert "frugalvae undo" not in str(caught.value)


def test_a_missing_file_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "none.frugal")
    for act in (store.load, store.read, store.read_undo, store.check_there):
        with pytest.raises(MemoryFileError, match="there is no such file; .* 'frugalvae learn .*"):
            act()


def test_a_file_that_knows_nothing_is_loaded_only_if_it_may(file: Path) -> None:
    store = Store(file)
    model = store.load()
    for label in (0, 1):
        model, _ = forget(model, label)
    store.save(model)
    assert not len(store.load(empty=True).classes)
    with pytest.raises(InputError, match="knows no class: all that it was taught was taken back"):
        store.load()


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_files_are_compared_up_to_the_first_difference(size: int, tmp_path: Path) -> None:
    one, other, linked = (tmp_path / name for name in ("one", "other", "linked"))
    content = bytes(size)
    one.write_bytes(content)
    other.write_bytes(content)
    os.link(one, linked)
    assert _same(one, linked)
    assert _same(one, other)
    for different in (content + b"x", content[:-1] + b"x", b"x" + content[1:]):
        other.write_bytes(different)
        assert not _same(one, other)
        assert not _same(other, one)


# --------------------------------------------------------------------------- receipts


@pytest.mark.parametrize("scrub", [False, True])
@pytest.mark.parametrize("quantiles", [(), tuple(map(float, range(101)))])
def test_a_receipt_says_what_was_removed_and_what_remains(
    scrub: bool, quantiles: tuple[float, ...], file: Path
) -> None:
    store = Store(file)
    before, digest = size_and_checksum(store), hashlib.sha256(file.read_bytes()).hexdigest()
    assert before == {"bytes": file.stat().st_size, "sha256": digest}
    model, remains = forget(store.load(), 1, scrub=scrub)
    store.save(model)
    after = size_and_checksum(store)
    model = replace(model, taught_novelty=TaughtNovelty(quantiles, 20))
    found = receipt(model, 1, ["a trace"], before, after)
    assert found == {
        "class": 1,
        "samples": 10,
        "bytes": before["bytes"] - after["bytes"],
        "remains": ["a trace", QUANTILES] if quantiles and not scrub else ["a trace"],
        "classes": 1,
        "before": before,
        "after": after,
        "when": model.history[-1]["when"],
        "scrub": scrub,
    }
    assert remains == []
