"""Data sets of images: folders, archives, CIFAR-100 and digits."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.test_images import save, zipped

from frugalvae.console import listening
from frugalvae.errors import InputError
from frugalvae.samples import open_samples
from frugalvae_lab.images.cifar import loads, write_zip
from frugalvae_lab.images.dataset import Images, digit_images, load_digits, load_images


def shade(images: np.ndarray) -> list[int]:
    """The red of each image, which tells images of one colour apart."""
    return images[:, 0, 0, 0].tolist()


def same(one: Images, other: Images) -> bool:
    parts = ("x_train", "y_train", "x_test", "y_test")
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two alphabets with three characters of eight drawings, each of its own shade."""
    root = tmp_path / "set"
    for number in range(24):
        character = ("greek/alpha", "greek/beta", "latin/a")[number // 8]
        save(root / character / f"{number % 8}.png", (number, 0, 0))
    return root


# --------------------------------------------------------------------------- folders and archives


def test_a_folder_that_contains_images_is_a_class_named_by_its_path(folder: Path) -> None:
    images = load_images(folder, size=4)
    assert images.name == "set"
    assert images.classes.tolist() == ["greek/alpha", "greek/beta", "latin/a"]
    assert images.x_train.shape == (18, 4, 4, 3)
    assert images.x_train.dtype == np.uint8


def test_a_quarter_of_each_class_is_the_test_set_and_nothing_is_lost(folder: Path) -> None:
    images = load_images(folder, size=4)
    assert np.unique(images.y_test, return_counts=True)[1].tolist() == [2, 2, 2]
    assert sorted(shade(images.x_train) + shade(images.x_test)) == list(range(24))
    for x, y in ((images.x_train, images.y_train), (images.x_test, images.y_test)):
        assert [images.classes[red // 8] for red in shade(x)] == y.tolist()
    assert shade(images.x_test) != [6, 7, 14, 15, 22, 23]  # in random order
    assert same(images, load_images(str(folder), size=4))  # which is always the same


def test_folders_for_training_and_test_are_used_if_they_are_there(tmp_path: Path) -> None:
    for split, shades in (("train", (1, 2, 3)), ("test", (4,))):
        for red in shades:
            save(tmp_path / split / "birds" / "emu" / f"{red}.png", (red, 0, 0))
            save(tmp_path / split / "cat" / f"{red}.JPG", 0)
    images = load_images(tmp_path)
    assert images.classes.tolist() == ["birds/emu", "cat"]
    assert shade(images.x_train[images.y_train == "birds/emu"]) == [1, 2, 3]
    assert shade(images.x_test[images.y_test == "birds/emu"]) == [4]


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for name in ("bicycle", "train"):
        for number in range(4):
            save(tmp_path / name / f"{number}.png")
    assert load_images(tmp_path).classes.tolist() == ["bicycle", "train"]


def test_a_zip_archive_equals_its_folder_wrapped_or_not(folder: Path, tmp_path: Path) -> None:
    save(folder / "latin" / "a" / ".hidden.png")
    save(folder / ".cache" / "b.png")
    save(folder / "__MACOSX" / "latin" / "a" / "c.png")
    (folder / "readme.txt").write_text("not an image")
    plain = load_images(folder)
    assert len(plain.classes) == 3
    for prefix in ("", "wrapper/"):
        archive = zipped(folder, tmp_path / "set.zip", prefix)
        assert same(load_images(archive), plain)
        assert load_images(archive).name == "set"


def test_a_zip_of_training_and_test_folders_keeps_them(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name in ("a", "b"):
            save(tmp_path / "set" / split / name / "1.png", len(split))
    whole = load_images(zipped(tmp_path / "set", tmp_path / "whole.zip", "wrapper/"))
    assert whole.y_test.tolist() == ["a", "b"]
    parts = [
        zipped(tmp_path / "set" / split, tmp_path / f"{split}.zip", f"{split}/")
        for split in ("train", "test")
    ]
    assert same(load_images(parts), whole)


def test_one_class_in_a_zip_is_a_class_and_no_wrapper(tmp_path: Path) -> None:
    save(tmp_path / "set" / "cat" / "1.png")
    images = load_images(zipped(tmp_path / "set", tmp_path / "set.zip"))
    assert images.y_train.tolist() == ["cat"]
    assert len(images.x_test) == 0  # one image cannot be split


def test_data_sets_are_merged_and_what_both_have_is_counted_once(
    folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    for number in range(8):
        save(other / "greek" / "alpha" / f"{number}.png", (number, 0, 0))  # in both
        save(other / "korean" / "a" / f"{number}.png", (100 + number, 0, 0))
    save(other / "latin" / "a" / "more.png", (99, 0, 0))
    archives = [
        zipped(folder, tmp_path / "small1.zip", "images_1/"),
        zipped(other, tmp_path / "small2.zip", "images_2/"),
    ]
    merged = load_images(archives)
    assert merged.name == "small1+small2"
    assert merged.classes.tolist() == ["greek/alpha", "greek/beta", "korean/a", "latin/a"]
    reds = sorted(shade(merged.x_train) + shade(merged.x_test))
    assert reds == [*range(24), 99, *range(100, 108)]
    assert same(merged, load_images([other, folder]))  # in either order, zipped or not


def test_reading_tells_its_progress(folder: Path) -> None:
    events: list[tuple[str, int, int]] = []
    with listening(lambda *event: events.append(event)):
        load_images(folder)
    assert events[-1] == ("reading images", 24, 24)


# --------------------------------------------------------------------------- what cannot be read


def test_paths_that_are_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: there is no such file or folder"):
        load_images(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no paths were given"):
        load_images([])
    with pytest.raises(InputError, match="size is 0; expected a whole number, at least 1"):
        load_images(tmp_path, size=0)


def broken_image(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / "bad.png").write_bytes(b"not an image")


def cut_image(root: Path) -> None:
    (root / "a").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "jpeg")
    (root / "a" / "cut.jpg").write_bytes(buffer.getvalue()[:2000])


def unknown_in_test(root: Path) -> None:
    save(root / "train" / "a" / "1.png")
    save(root / "test" / "b" / "1.png")


def directly_in_train(root: Path) -> None:
    for number in range(3):
        save(root / "train" / f"{number}.png")
    unknown_in_test(root)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.stat, r"no images in it \(JPEG, PNG, .* HEIC\); expected one folder per class"),
        (broken_image, r"a/bad.png cannot be read as an image \(.*\); repair or remove it"),
        (cut_image, r"a/cut.jpg cannot be read as an image \(.*truncated"),
        (unknown_in_test, r"the test has classes that training lacks: \['b'\]"),
        (directly_in_train, "3 images are in no class's folder, and 2 are in folders; expected"),
    ],
)
def test_a_bad_folder_says_what_is_wrong(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    root = tmp_path / "set"
    root.mkdir()
    make(root)
    with pytest.raises(InputError, match=f"set: {message}"):
        load_images(root)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 but broken")
    with pytest.raises(InputError, match="bad.zip: neither a folder nor a readable zip archive"):
        load_images(tmp_path / "bad.zip")


def test_a_damaged_entry_of_a_zip_is_named(folder: Path, tmp_path: Path) -> None:
    archive = zipped(folder, tmp_path / "set.zip")
    content = bytearray(archive.read_bytes())
    content[content.index(b"IDAT") + 6] ^= 255  # its checksum no longer fits
    archive.write_bytes(content)
    with pytest.raises(InputError, match=r"set: \w+/\w+/\d.png cannot be read .*Bad CRC"):
        load_images(archive)


def test_two_images_of_one_path_are_refused_if_they_differ(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "other" / "greek" / "alpha" / "3.png", (200, 0, 0))
    with pytest.raises(InputError, match="greek/alpha/3.png is in two .* not the same image"):
        load_images([folder, tmp_path / "other"])


# --------------------------------------------------------------------------- CIFAR-100


def py2_pickle(value: Any) -> bytes:
    """A pickle as Python 2 wrote the archive: byte strings, protocol 2, NumPy of 2009."""
    return b"\x80\x02" + _py2(value) + b"."


def _py2(value: Any) -> bytes:
    if isinstance(value, bytes):
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_py2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_py2(key) + _py2(entry) for key, entry in value.items()) + b"u"
    assert isinstance(value, np.ndarray)
    less = b"J\xff\xff\xff\xff"  # -1
    kind = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN" + less * 2 + b"K\x00tb"
    start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    shape = b"(" + b"".join(_py2(side) for side in value.shape) + b"t"
    return start + b"(K\x01" + shape + kind + b"\x89" + _py2(value.tobytes()) + b"tb"


def cifar_parts(counts: tuple[int, int] = (4, 2)) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    parts: dict[str, Any] = {"meta": {b"fine_label_names": [b"apple", b"whale"]}}
    for split, count in zip(("train", "test"), counts, strict=True):
        data = rng.integers(0, 256, (count, 3072), np.uint8)
        parts[split] = {b"data": data, b"fine_labels": [number % 2 for number in range(count)]}
    return parts


def cifar_folder(tmp_path: Path, pickled: dict[str, bytes]) -> Path:
    root = tmp_path / "cifar-100-python"
    root.mkdir()
    for name, content in pickled.items():
        (root / name).write_bytes(content)
    return root


def cifar_archive(tmp_path: Path, pickled: dict[str, bytes]) -> Path:
    path = tmp_path / "cifar-100-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(cifar_folder(tmp_path, pickled), "cifar-100-python")
    return path


@pytest.fixture
def cifar() -> dict[str, Any]:
    return cifar_parts()


def dumps(parts: dict[str, Any], how: Callable[[Any], bytes] = py2_pickle) -> dict[str, bytes]:
    return {name: how(part) for name, part in parts.items()}


@pytest.mark.parametrize("how", [py2_pickle, lambda part: pickle.dumps(part, protocol=4)])
@pytest.mark.parametrize("where", [cifar_archive, cifar_folder])
def test_cifar_is_read_as_it_comes(
    tmp_path: Path,
    cifar: dict[str, Any],
    where: Callable[[Path, dict[str, bytes]], Path],
    how: Callable[[Any], bytes],
) -> None:
    images = load_images(where(tmp_path, dumps(cifar, how)))
    assert images.name == "cifar-100-python"
    assert images.y_train.tolist() == ["apple", "whale", "apple", "whale"]
    assert images.x_test.shape == (2, 32, 32, 3)
    row = cifar["train"][b"data"][3]
    for down, right, colour in ((0, 0, 0), (5, 7, 1), (31, 31, 2)):
        assert images.x_train[3, down, right, colour] == row[1024 * colour + 32 * down + right]


@pytest.mark.filterwarnings("ignore")  # NumPy has renamed what these ask for
def test_the_pickles_of_these_tests_are_what_pickle_itself_reads(cifar: dict[str, Any]) -> None:
    read = pickle.loads(py2_pickle(cifar["train"]), encoding="bytes")
    np.testing.assert_array_equal(read[b"data"], cifar["train"][b"data"])
    assert read[b"fine_labels"] == cifar["train"][b"fine_labels"]
    assert pickle.loads(py2_pickle(cifar["meta"]), encoding="bytes") == cifar["meta"]


def test_cifar_is_resized_as_other_images_are(tmp_path: Path, cifar: dict[str, Any]) -> None:
    path = cifar_archive(tmp_path, dumps(cifar))
    large, small = load_images([path]), load_images(path, size=16)
    for image, expected in zip(large.x_train, small.x_train, strict=True):
        resized = Image.fromarray(image).resize((16, 16), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(np.asarray(resized), expected)


class Hostile:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_hostile_pickle_is_an_error_and_runs_nothing(
    tmp_path: Path, cifar: dict[str, Any]
) -> None:
    trace = tmp_path / "trace"
    attack = pickle.dumps(Hostile(trace))
    pickle.loads(attack)
    assert trace.exists()  # it would run
    trace.unlink()
    path = cifar_archive(tmp_path, {**dumps(cifar), "test": attack})
    with pytest.raises(
        InputError, match=r"cifar-100-python.tar.gz: not readable as CIFAR-100 .*it asks for"
    ):
        load_images(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    "attack",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\ngetattr\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05numpy\x94\x8c\x0cndarray.dump\x94\x93.",
        b"P1\n.",
        pickle.dumps(np.array([print], object)),
        pickle.dumps(np.zeros(2)),
        pickle.dumps(np.zeros((2, 2), np.uint8, order="F"), protocol=4),
    ],
)
def test_pickles_may_ask_for_arrays_of_bytes_alone(attack: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        loads(attack)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("meta", {}, "KeyError"),
        ("train", [], "TypeError"),
        (
            "train",
            {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [0]},
            r"images are \(2, 3072\), labels are 1",
        ),
        ("test", {b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [-1]}, "a label is -1"),
        ("test", {b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [2]}, "IndexError"),
    ],
)
def test_other_content_is_refused(
    tmp_path: Path, cifar: dict[str, Any], part: str, content: Any, message: str
) -> None:
    path = cifar_folder(tmp_path, dumps({**cifar, part: content}))
    with pytest.raises(InputError, match=f"not readable as CIFAR-100 .*{message}.*download it"):
        load_images(path)


def test_a_cut_download_is_refused(tmp_path: Path, cifar: dict[str, Any]) -> None:
    path = cifar_archive(tmp_path, dumps(cifar))
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(InputError, match="not readable as CIFAR-100"):
        load_images(path)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("readme"))
    with pytest.raises(InputError, match=r"not readable as CIFAR-100 \(KeyError"):
        load_images(path)
    path.write_bytes(gzip.compress(b"not a tar archive"))
    with pytest.raises(InputError, match="neither a folder nor a readable zip archive"):
        load_images(path)


def test_cifar_is_not_merged(tmp_path: Path, folder: Path, cifar: dict[str, Any]) -> None:
    path = cifar_archive(tmp_path, dumps(cifar))
    with pytest.raises(InputError, match="cifar-100-python.tar.gz: .* cannot be merged"):
        load_images([folder, path])


def test_an_archive_of_cifar_has_the_same_images(tmp_path: Path, cifar: dict[str, Any]) -> None:
    """So that ``frugalvae encode`` can take it."""
    path, made = cifar_archive(tmp_path, dumps(cifar)), tmp_path / "cifar100.zip"
    write_zip(path, made)
    whole = load_images(path)
    with open_samples(made, "both") as images:
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(f.read()))) for f in images.files])
    for split, rows in (("train", ~images.test), ("test", images.test)):
        order = np.argsort(getattr(whole, f"y_{split}"), kind="stable")
        np.testing.assert_array_equal(pixels[rows], getattr(whole, f"x_{split}")[order])


# --------------------------------------------------------------------------- digits and held-out


def test_digit_images_are_the_digits() -> None:
    images, features = digit_images(), load_digits()
    for split in ("train", "test"):
        x, y = getattr(images, f"x_{split}"), getattr(images, f"y_{split}")
        assert x.dtype == np.uint8
        assert x.max() == 255
        np.testing.assert_array_equal(y, getattr(features, f"y_{split}"))
        for colour in range(3):
            grey = x[..., colour].reshape(len(x), 64) / 255
            np.testing.assert_allclose(grey, getattr(features, f"x_{split}"), atol=0.5 / 255)


def test_holding_out_images_is_holding_out_features() -> None:
    """The same rows, from training alone."""
    images, features = digit_images(), load_digits()
    part, twin = images.held_out(0.25, seed=3), features.held_out(0.25, seed=3)
    assert part.name == "digits (held out)"
    assert len(part.x_train) + len(part.x_test) == len(images.x_train)
    np.testing.assert_array_equal(part.y_test, twin.y_test)
    grey = part.x_test[..., 0].reshape(-1, 64) / 255
    np.testing.assert_allclose(grey, twin.x_test, atol=0.5 / 255)
