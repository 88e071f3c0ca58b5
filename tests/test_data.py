from __future__ import annotations

import io
import os
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae.cli.main import main
from frugalvae.errors import FeatureFileError
from frugalvae.images.feature_file import (
    REQUIRED,
    Features,
    load_features,
    open_training,
    read_rows,
    write_features,
)
from frugalvae.samples import features_of

NAMED = {"y_train": np.array(list("bbaacc")), "y_test": np.array(list("abc"))}


def arrays(**changes: Any) -> dict[str, Any]:
    """A valid feature file's content, with entries changed; ``None`` removes one."""
    rng = np.random.default_rng(0)
    content = {
        "x_train": rng.normal(size=(6, 3)).astype(np.float16),
        "y_train": np.array([0, 0, 1, 1, 2, 2], np.int16),
        "x_test": rng.normal(size=(3, 3)).astype(np.float16),
        "y_test": np.array([0, 1, 2], np.int16),
        **changes,
    }
    return {key: value for key, value in content.items() if value is not None}


def test_a_feature_file_is_read_as_float32(tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", **arrays())
    features = load_features(tmp_path / "some.npz")
    assert features.name == "some"
    assert features.x_train.dtype == np.float32
    np.testing.assert_array_equal(features.x_train, arrays()["x_train"].astype(np.float32))
    assert features.classes.tolist() == [0, 1, 2]
    assert features.text is None


def test_names_and_text_features_are_attached_to_their_classes(tmp_path: Path) -> None:
    text = np.eye(3, dtype=np.float16)
    np.savez(tmp_path / "f.npz", **arrays(class_names=np.array(["cat", "dax", "emu"]), text=text))
    features = load_features(tmp_path / "f.npz")
    assert features.y_test.tolist() == ["cat", "dax", "emu"]
    assert features.text is not None
    assert features.text["dax"].tolist() == [0, 1, 0]


@pytest.mark.parametrize("names", [None, ["c", "a", "unused", "b"]])
def test_labels_may_be_names(tmp_path: Path, names: list[str] | None) -> None:
    told = {"class_names": np.array(names), "text": np.eye(4, 3)} if names else {}
    np.savez(tmp_path / "f.npz", **arrays(**NAMED, **told))
    features = load_features(tmp_path / "f.npz")
    assert "".join(features.y_train) == "bbaacc"
    assert "".join(features.y_test) == "abc"
    assert features.text is None or features.text["a"].tolist() == [0, 1, 0]


def test_what_made_the_features_goes_with_them(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", **arrays())
    old = load_features(tmp_path / "old.npz")
    assert old.encoder is None
    write_features(tmp_path / "new.npz", replace(old, encoder={"encoder": "clip", "dims": [3]}))
    new = load_features(tmp_path / "new.npz")
    assert new.encoder == {"encoder": "clip", "dims": [3]}
    assert new.held_out(0.5, seed=0).encoder == new.encoder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": None}, "x_train is missing"),
        ({"y_train": None, "x_test": None}, "y_train is missing; x_test is missing"),
        (
            {"x_train": np.zeros((6, 3), int)},
            r"x_train is int64 of shape \(6, 3\), expected floats",
        ),
        ({"x_train": np.zeros(6)}, r"x_train is float64 of shape \(6,\)"),
        ({"x_train": np.full((6, 3), np.nan)}, "x_train holds NaN or infinite values"),
        ({"y_train": np.zeros(6)}, "y_train is float64 of shape .*, expected integers"),
        ({"y_train": np.array(["a"] * 6)}, "y_train holds names, which both"),
        (NAMED | {"class_names": np.array(["a", "b"])}, "y_train holds names, .* class_names all"),
        (NAMED | {"text": np.eye(3)}, "y_train holds names, .* or has text"),
        (NAMED | {"y_test": np.array(["a", "b", "d"])}, "y_test has classes that y_train lacks"),
        (NAMED | {"y_test": np.array([["a", "b", "c"]])}, "y_train holds names.*y_test is <U1"),
        ({"y_test": np.zeros(2, int)}, "x_test has 3 rows but y_test has 2 labels"),
        ({"x_test": np.zeros((3, 4))}, "x_train has 3 columns but x_test has 4"),
        ({"y_test": np.array([0, 1, 9])}, r"y_test has classes that y_train lacks: \[9\]"),
        ({"class_names": np.array(["a", "b"])}, "class_names has 2 entries, labels go to 2"),
        ({"text": np.zeros((3, 3), int)}, "text is int64"),
        (
            {"text": np.eye(4, 3), "class_names": np.array(["a", "b", "c"])},
            "class_names has 3 entries but text has 4",
        ),
        ({"encoder": np.array("[1]")}, r"encoder is <U3 of shape \(\), expected a JSON object"),
        ({"encoder": np.array(["{}"])}, r"encoder is <U2 of shape \(1,\)"),
        ({"encoder": np.array("{")}, "encoder is <U1"),
    ],
)
def test_a_bad_feature_file_says_what_is_wrong(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays(**changes))
    with pytest.raises(FeatureFileError, match=f"bad.npz: {message}"):
        load_features(tmp_path / "bad.npz")


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FeatureFileError, match="there is no such file"):
        load_features(tmp_path / "absent.npz")
    npy = io.BytesIO()
    np.save(npy, np.zeros(3))
    for content in (b"", b"not an archive", b"PK\x03\x04 but broken", npy.getvalue()):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(FeatureFileError, match="not a readable .npz file"):
            load_features(tmp_path / "bad.npz")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", **arrays(x_train=np.array([print], object)))
    with pytest.raises(FeatureFileError, match="not a readable .npz file of plain arrays"):
        load_features(tmp_path / "evil.npz")


# --------------------------------------------------------------------------- files that do damage

#: All that reads ``.npz`` files, as verbs call it.
READERS: list[Callable[[Path], object]] = [
    load_features,
    partial(read_rows, names=("x",)),
    partial(features_of, wanted="testing"),
]
CLAIMS = [
    (np.dtype("<f4"), (10**12, 3)),
    (np.dtype("<f4"), (2**63, 2**63)),
    (np.dtype("<f4"), (-6, -3)),
    (np.dtype("<f4"), (7, 3)),
    (np.dtype("<U500000000"), ()),
    (np.dtype("O"), (6, 3)),
    (np.dtype([("a", "<f4"), ("b", "<f4")]), (6, 3)),
]


def npy(dtype: np.dtype[Any], shape: tuple[int, ...], content: bytes = bytes(72)) -> bytes:
    """An array as its file claims it to be."""
    buffer = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(buffer, header)
    return buffer.getvalue() + content


def archive(path: Path, packed: int = zipfile.ZIP_STORED, **entries: bytes) -> Path:
    """A feature file whose entries are replaced by other bytes."""
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, array in arrays().items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            file.writestr(f"{name}.npy", entries.pop(name, buffer.getvalue()))
        for name, content in entries.items():
            file.writestr(f"{name}.npy", content)
    return path


def small_peak(read: Callable[[], object]) -> int:
    """The most bytes that Python and NumPy have had at a time."""
    tracemalloc.start()
    try:
        read()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize(("dtype", "shape"), CLAIMS)
def test_what_an_array_claims_is_checked_before_anything_is_allocated(
    tmp_path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    path = archive(tmp_path / "claims.npz", x_train=npy(dtype, shape), x=npy(dtype, shape))

    def read() -> None:
        for reader in READERS:
            with pytest.raises(FeatureFileError, match="claims.npz: not a readable .npz"):
                reader(path)

    assert small_peak(read) < 5_000_000


def test_an_array_of_nothing_is_refused(tmp_path: Path) -> None:
    """Names of no letters take no bytes, however many they are."""
    path = archive(tmp_path / "x.npz", y_train=npy(np.dtype("<U0"), (10**12,), b""))
    with pytest.raises(
        FeatureFileError, match=r"an array of shape \(10+,\) of <U0, which there is"
    ):
        load_features(path)


def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """An entry that is not packed may lie about its size, and rows are read from the file."""
    train, test = (npy(np.dtype("<f4"), (count, 10**8), b"") for count in (6, 3))
    path = archive(tmp_path / "wide.npz", x_train=train, x_test=test)
    with zipfile.ZipFile(path) as file:
        entries = [file.getinfo(f"{name}.npy") for name in ("x_train", "x_test")]
        places = [entry.header_offset for entry in entries]
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\1\2")
    for place, claimed in zip(
        places, (24 * 10**8, 12 * 10**8), strict=True
    ):  # in the directory, the size is 24 bytes in, and the place 42
        listed = content.index(struct.pack("<I", place), directory + 42) - 42
        struct.pack_into("<I", content, listed + 24, len(train) + claimed)
    path.write_bytes(content)
    with pytest.raises(FeatureFileError, match="x_train claims more bytes than its file has"):
        open_training(path)


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    bomb = npy(np.dtype("<f4"), (4_000_000, 10), bytes(160_000_000))
    path = archive(tmp_path / "bomb.npz", zipfile.ZIP_DEFLATED, x_train=bomb)
    assert path.stat().st_size < 1_000_000
    del bomb

    def read() -> None:
        with pytest.raises(FeatureFileError, match="bytes claim to be arrays of 160,00"):
            load_features(path)

    assert small_peak(read) < 5_000_000
    packed = archive(tmp_path / "lzma.npz", zipfile.ZIP_LZMA)
    with pytest.raises(FeatureFileError, match="packed in a way that is not read here"):
        load_features(packed)


def test_packed_feature_files_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "packed.npz", **arrays(other=np.array([print], object)))
    assert load_features(tmp_path / "packed.npz").x_train.shape == (6, 3)  # others are not read


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "twice.npz")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("x_train.npy", b"other")
    with pytest.raises(FeatureFileError, match="x_train is there twice"):
        load_features(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd.npz"
    if kind == "pipe":
        os.mkfifo(path)  # reading it would wait for ever
    elif kind == "device":
        path.symlink_to("/dev/zero")  # has no end
    else:
        path.mkdir()
    for reader in READERS:
        with pytest.raises(FeatureFileError, match="it is not a regular file"):
            reader(path)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ('{"a":' * 100_000, "expected a JSON object"),
        ("[" * 100_000, "expected a JSON object"),
        ('{"weights": NaN}', "expected a JSON object"),
        ('{"encoder": 5}', "encoder is malformed: encoder is not what"),
        ('{"encoder": "clip", "model": ["a"]}', "encoder is malformed: model"),
        ('{"given": "clip"}', "encoder is malformed: given"),
        ('{"given": {"name": 5, "settings": []}}', "malformed: given.name, given.settings"),
        ('{"preprocessing": {"crop": 224}}', "encoder is malformed: preprocessing.crop"),
        (5, "expected a JSON object"),
        (b"{}", "expected a JSON object"),
    ],
)
def test_a_malformed_encoder_is_refused_by_all_readers(
    tmp_path: Path, encoder: Any, message: str
) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays(encoder=np.array(encoder), x=np.ones((2, 3))))
    for reader in READERS:
        with pytest.raises(FeatureFileError, match=message):
            reader(path)


@pytest.mark.parametrize("name", REQUIRED)
def test_an_array_without_dimensions_is_refused(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays(**{name: np.array(1.0)}))
    with pytest.raises(FeatureFileError, match=rf"{name} is float64 of shape \(\), expected"):
        load_features(tmp_path / "bad.npz")
    np.savez(tmp_path / "rows.npz", x=np.array(1.0))
    with pytest.raises(FeatureFileError, match=r"expected floats of shape \(n, d\) in x"):
        read_rows(tmp_path / "rows.npz", ("x",))


def test_names_that_cannot_be_labels_are_refused(tmp_path: Path) -> None:
    for name in ("a\0b", "a\x1b[2J", " ", "a\u202eb"):
        np.savez(tmp_path / "bad.npz", **arrays(class_names=np.array(["cat", name, "emu"])))
        with pytest.raises(FeatureFileError, match="class_names: the label is "):
            load_features(tmp_path / "bad.npz")


@pytest.mark.parametrize("verb", ["learn", "evaluate", "predict", "learn-class"])
def test_every_verb_ends_cleanly_with_such_files(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good, file = tmp_path / "good.npz", tmp_path / "it.frugal"
    np.savez(good, **arrays())
    quick = ["--memory", "gaussian-diagonal", "--head", "nearest-mean"]
    assert main(["learn", str(file), str(good), *quick]) == 0
    before = file.read_bytes()
    os.mkfifo(tmp_path / "pipe.npz")
    np.savez(tmp_path / "deep.npz", **arrays(encoder=np.array("[" * 100_000), x=np.ones((2, 3))))
    archive(tmp_path / "claims.npz", **{n: npy(*CLAIMS[0]) for n in ("x_train", "x_test", "x")})
    for name in ("pipe.npz", "deep.npz", "claims.npz"):
        path = str(tmp_path / name)
        words = {
            "learn": [file, path],
            "evaluate": [file, path, "-o", tmp_path / "page.html"],
            "predict": [file, path],
            "learn-class": [file, path, "--class", "0"],
        }[verb]
        capsys.readouterr()
        assert main([verb.partition("-")[0], *map(str, words)]) == 2
        assert capsys.readouterr().err.startswith(f"frugalvae: {path}: ")
    assert file.read_bytes() == before


def mutated(chance: random.Random, entries: dict[str, bytes]) -> dict[str, bytes]:
    """The same with some bytes of an array changed, cut off or added, or another array's."""
    name, other = chance.choice(list(entries)), chance.choice(list(entries))
    content = bytearray(entries[name])
    for _ in range(chance.randrange(1, 4)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    changed = [content, content[: chance.randrange(len(content))], content + bytes(9)]
    return {**entries, name: bytes(chance.choice([*changed, entries[other]]))}


@pytest.mark.filterwarnings("ignore")  # NumPy's, of numbers that overflow
def test_a_mutated_file_is_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    names, text = np.array(["cat", "dax", "emu"]), np.eye(3, dtype=np.float16)
    told = np.array('{"encoder": "clip", "weights": "a", "preprocessing": {"crop": [224, 224]}}')
    whole = {}
    for name, array in arrays(
        class_names=names, text=text, encoder=told, x=np.ones((2, 3))
    ).items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        whole[name] = buffer.getvalue()
    chance, refused = random.Random(0), 0
    for _ in range(400):
        path = archive(tmp_path / "it.npz", **mutated(chance, whole))
        for reader in READERS:
            try:
                reader(path)
            except FeatureFileError:
                refused += 1
    assert 400 < refused < 1100


# --------------------------------------------------------------------------- splits


def test_holding_out_takes_from_training_and_never_from_test() -> None:
    y = np.repeat([0, 1], [8, 4])
    x = np.arange(12, dtype=np.float32)[:, None]
    features = Features("f", x, y, np.full((2, 1), -1, np.float32), np.array([0, 1]))
    part = features.held_out(0.25, seed=3)
    assert sorted([*part.x_train[:, 0], *part.x_test[:, 0]]) == list(range(12))
    assert np.bincount(part.y_test).tolist() == [2, 1]
