"""Checkpoints of PyTorch are read without PyTorch: tensors, and nothing else."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae.encoders import conversion as checkpoints
from frugalvae.encoders.conversion import MAGIC, VERSION, read_checkpoint
from frugalvae.encoders.efficientnet import MODELS, find_checkpoint
from frugalvae.errors import InputError

DICT = b"ccollections\nOrderedDict\n)R"
FLOATS = b"ctorch\nFloatStorage\n"
NUMBERS = np.arange(6, dtype=np.float32)


def value(given: Any) -> bytes:
    """How a pickle of protocol 2 writes a value."""
    return pickle.dumps(given, 2)[2:-1]


def storage(kind: bytes = FLOATS, length: int = 6, view: Any = None) -> bytes:
    told = [value("storage"), kind, value("0"), value("cpu"), value(length), value(view)]
    return b"(" + b"".join(told) + b"tQ"


def tensor(
    numbers: bytes | None = None, offset: Any = 0, shape: Any = (2, 3), strides: Any = (3, 1)
) -> bytes:
    told = [numbers or storage(), value(offset), value(shape), value(strides), value(False), DICT]
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + b"".join(told) + b"tR"


def checkpoint(content: bytes, *, name: Any = "w", length: int = 6, magic: int = MAGIC) -> bytes:
    """A file with one entry, written as PyTorch does it."""
    system = {"protocol_version": VERSION, "little_endian": True, "type_sizes": {"int": 4}}
    start = b"".join(pickle.dumps(part, 2) for part in (magic, VERSION, system))
    entries = b"\x80\x02" + DICT + b"(" + value(name) + content + b"u."
    return (
        start + entries + pickle.dumps(["0"], 2) + length.to_bytes(8, "little") + NUMBERS.tobytes()
    )


def read(folder: Path, content: bytes) -> dict[str, np.ndarray]:
    path = folder / "file.pth"
    path.write_bytes(content)
    return read_checkpoint(path)


def test_tensors_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, checkpoint(tensor()))
    np.testing.assert_array_equal(found["w"], NUMBERS.reshape(2, 3))
    found = read(tmp_path, checkpoint(tensor(offset=1, shape=(2,), strides=(3,))))
    np.testing.assert_array_equal(found["w"], [1, 4])
    assert read(tmp_path, checkpoint(tensor(shape=(0, 9), strides=(9, 1))))["w"].shape == (0, 9)
    assert read(tmp_path, checkpoint(tensor(shape=(), strides=())))["w"] == 0


@pytest.mark.parametrize("model", MODELS)
def test_shipped_weights_are_read_as_pytorch_reads_them(model: str) -> None:
    torch = pytest.importorskip("torch")
    path = find_checkpoint(model)
    found, expected = read_checkpoint(path), torch.load(path, weights_only=True)
    assert list(found) == list(expected)
    for name, weight in expected.items():
        assert f"torch.{found[name].dtype}" == str(weight.dtype)
        np.testing.assert_array_equal(found[name], weight.numpy())


def test_what_pytorch_writes_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weights = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    state = {"whole": weights, "turned": weights.permute(2, 0, 1), "part": weights[1:, :, 2]}
    torch.save(state, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    found = read_checkpoint(tmp_path / "old.pth")
    for name, weight in state.items():
        np.testing.assert_array_equal(found[name], weight.numpy())
    torch.save(state, tmp_path / "new.pth")
    with pytest.raises(InputError, match="new.pth: no checkpoint of tensors alone, as PyTorch bef"):
        read_checkpoint(tmp_path / "new.pth")


class Command:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def harmful(path: Path) -> dict[str, bytes]:
    """Entries that run something where they are unpickled, each in another way."""
    text = value(f"touch {path}")
    opened = value(str(path)) + value("w")
    return {
        "a call": pickle.dumps(Command(path), 2)[2:-1],
        "a call, protocol 4": pickle.dumps(Command(path), 4)[2:-1],
        "a chain": b"c__builtin__\ngetattr\n(cos\npath\n" + value("os") + b"tR" + value("x"),
        "inst": b"(" + text + b"ios\nsystem\n",
        "obj": b"(cos\nsystem\n" + text + b"o",
        "newobj": b"cio\nFileIO\n" + opened + b"\x86\x81",
        "a storage of a kind of its own": tensor(storage(b"cos\nsystem\n")),
        "a tensor of something else": b"ctorch._utils\n_rebuild_tensor_v2\n(cos\nsystem\n))tR",
        "a reference to something else": b"cos\nsystem\n" + text + b"\x86Q",
        "a hook": b"cio\nFileIO\n" + b"(" + opened + b"tR" + value({}) + b"b",
        "a dictionary of arguments": b"ccollections\nOrderedDict\n(((" + opened + b"tltR",
        "a name alone": b"cos\nsystem\n",
    }


@pytest.mark.parametrize("kind", harmful(Path()))
def test_nothing_in_a_file_is_run(kind: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    if kind in ("a call", "inst", "obj"):
        pickle.loads(b"\x80\x02" + harmful(made)[kind] + b".")
        made.unlink()  # this is what unpickling does
    with pytest.raises(InputError, match="file.pth: no checkpoint of tensors alone"):
        read(tmp_path, checkpoint(harmful(made)[kind]))
    assert not made.exists()


@pytest.mark.parametrize(
    "content",
    [
        checkpoint(tensor(shape=(2, 4), strides=(4, 1))),
        checkpoint(tensor(shape=(10**9, 10**9), strides=(0, 0))),
        checkpoint(tensor(shape=(2, 3), strides=(2**62, 1))),
        checkpoint(tensor(shape=(1, 1, 1), strides=(1, 1))),
        checkpoint(tensor(offset=1)),
        checkpoint(tensor(offset=-1)),
        checkpoint(tensor(strides=(-3, 1))),
        checkpoint(tensor(shape=(2.0, 3.0))),
        checkpoint(tensor(offset=True)),
        checkpoint(tensor(storage(length=2**60))),
        checkpoint(tensor(storage(length=2**60)), length=2**60),
        checkpoint(tensor(storage(length=2**63)), length=2**63),
        checkpoint(tensor(storage(length=7)), length=7),
        checkpoint(tensor(storage(view=("0", 0, 6)))),
        checkpoint(tensor(storage(b"ctorch\nHalfStorage\n"))),
        checkpoint(tensor(), length=5),
        checkpoint(tensor(), magic=1),
        checkpoint(tensor(), name=3),
        checkpoint(value(3)),
        checkpoint(b"X\xff\xff\xff\xff"),
        b"",
        b"PK\x03\x04",
    ],
)
def test_sizes_that_do_not_fit_are_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checkpoint of tensors alone"):
        read(tmp_path, content)


def test_names_within_names_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair of pairs of pairs of a name: to hash or to show it takes ages."""
    nested = b"cfar\ninside\n" + b"q\x00h\x00\x86" * 60

    def refuse(name: checkpoints.Name) -> Any:
        raise AssertionError(f"{name.text!r} is looked at, as many times as it is in there")

    monkeypatch.setattr(checkpoints.Name, "__hash__", refuse)
    monkeypatch.setattr(checkpoints.Name, "__repr__", refuse)
    for entry in (nested + value(1), value("w") + nested + b")R"):
        content = checkpoint(b"", name=None).replace(DICT + b"(N", DICT + b"(" + entry)
        with pytest.raises(InputError, match="no checkpoint of tensors alone"):
            read(tmp_path, content)


def test_damaged_files_are_refused_or_read_but_nothing_else(tmp_path: Path) -> None:
    whole, chance, refused = checkpoint(tensor()), random.Random(0), 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(len(whole))
            damaged[start : start + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        try:
            read(tmp_path, bytes(damaged))
        except InputError:
            refused += 1
    assert 1000 < refused < 1500
