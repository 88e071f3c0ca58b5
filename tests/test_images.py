from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from frugalvae.encoders.defaults import Preprocessing, target_size
from frugalvae.images.decode import decode, reading_images

RED, WHITE = [255, 0, 0], [255, 255, 255]


def save(path: Path, colour: int | tuple[int, ...] = 0, size: int = 8, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (size, size), colour).save(path)


def zipped(folder: Path, archive: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*"), reverse=True):
            file.write(path, prefix + path.relative_to(folder).as_posix())
    return archive


# --------------------------------------------------------------------------- kinds of images


def read(tmp_path: Path, image: Image.Image, size: int, ending: str = "png", **how: Any) -> Any:
    """What an image becomes on its way through a file."""
    image.save(tmp_path / f"1.{ending}", **how)
    decoded = decode((tmp_path / f"1.{ending}").read_bytes())
    return np.asarray(decoded.resize((size, size), Image.Resampling.BILINEAR)).astype(int)


def test_pixels_come_as_they_are_if_the_size_is_right(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 5, 3), np.uint8)
    np.testing.assert_array_equal(read(tmp_path, Image.fromarray(pixels), 5), pixels)


def test_shrinking_takes_averages(tmp_path: Path) -> None:
    board = (np.indices((32, 32)).sum(axis=0) % 2 * 255).astype(np.uint8)
    small = read(tmp_path, Image.fromarray(board), 4)
    assert np.abs(small - 127.5).max() < 6


def test_photographs_are_turned_upright_as_their_camera_says(tmp_path: Path) -> None:
    stored = np.zeros((4, 4, 3), np.uint8)
    stored[0] = RED  # "6": to be turned by 90 degrees clockwise, so the top comes to the right
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = read(tmp_path, Image.fromarray(stored), 4, exif=exif)
    np.testing.assert_array_equal(upright, np.rot90(stored, k=-1))
    assert upright[:, 3].tolist() == [RED] * 4


def test_shades_of_no_known_scale_are_refused() -> None:
    """Converted, a picture of shades from 0 to 1 would be black."""
    buffer = io.BytesIO()
    Image.fromarray(np.full((3, 3), 0.5, np.float32)).save(buffer, "tiff")
    with pytest.raises(ValueError, match="floating-point numbers, which have no known scale"):
        decode(buffer.getvalue())


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, WHITE),
        ("L", 90, [90, 90, 90]),
        ("I;16", 257 * 90, [90, 90, 90]),
        ("LA", (90, 255), [90, 90, 90]),
        ("LA", (90, 0), WHITE),
        ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (9, 9, 9, 0), WHITE),
        ("RGBA", (255, 0, 0, 51), [255, 204, 204]),  # one fifth red on white
    ],
)
def test_grey_and_transparent_images(
    tmp_path: Path, mode: str, colour: Any, expected: list[int]
) -> None:
    pixels = read(tmp_path, Image.new(mode, (3, 3), colour), 3)
    assert pixels.reshape(-1, 3).tolist() == [expected] * 9


@pytest.mark.parametrize("ending", ["png", "gif"])
def test_palettes_with_a_transparent_colour(tmp_path: Path, ending: str) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    pixels = read(tmp_path, image, 2, ending, transparency=1)
    assert pixels[0].tolist() == [RED, WHITE]


def test_print_colours(tmp_path: Path) -> None:
    pixels = read(tmp_path, Image.new("CMYK", (4, 4), (0, 255, 255, 0)), 4, "tif")
    assert pixels[0, 0].tolist() == RED


def test_of_an_animation_the_first_image_is_taken(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    pixels = read(tmp_path, first, 4, "gif", save_all=True, append_images=[second])
    assert pixels[0, 0].tolist() == RED


def test_colours_of_a_printed_photograph(tmp_path: Path) -> None:
    pixels = read(tmp_path, Image.new("CMYK", (8, 8), (0, 255, 255, 0)), 8, "jpg", quality=100)
    assert np.abs(pixels[0, 0] - RED).max() < 5


@pytest.mark.parametrize(("mode", "shade"), [("L", 90), ("I;16", 257 * 90), ("LA", (90, 255))])
def test_grey_photographs_are_turned_upright_too(tmp_path: Path, mode: str, shade: Any) -> None:
    stored = Image.new(mode, (4, 4))
    for column in range(4):
        stored.putpixel((column, 0), shade)
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = read(tmp_path, stored, 4, exif=exif)
    assert upright[:, 3, 0].tolist() == [90] * 4


def test_one_transparent_colour_of_an_image_without_a_palette(tmp_path: Path) -> None:
    image = Image.new("RGB", (2, 1), (1, 2, 3))
    image.putpixel((0, 0), (255, 0, 0))
    pixels = read(tmp_path, image, 2, transparency=(1, 2, 3))
    assert pixels[0].tolist() == [RED, WHITE]


@pytest.mark.parametrize("notes", [b"Exif\0\0garbage", b"Exif\0\0II*\0\x08\0\0\0\x05\0"])
@pytest.mark.parametrize("ending", ["png", "jpg", "webp"])
def test_notes_of_a_camera_that_are_damaged_do_no_harm(
    tmp_path: Path, ending: str, notes: bytes
) -> None:
    with reading_images():
        pixels = read(tmp_path, Image.new("L", (8, 8), 90), 8, ending, exif=notes)
    assert np.abs(pixels - 90).max() < 3


def test_no_program_is_started_for_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow leaves EPS to Ghostscript, a program that runs what is in the file."""
    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: started.append("it"))
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "eps")
    with pytest.raises(ValueError, match="no known format"):
        decode(buffer.getvalue())
    assert not started


def test_images_are_opened_in_one_place() -> None:
    root = Path(__file__).parent.parent
    files = [
        path
        for part in ("src", "lab/src", "lab/benchmarks")
        for path in (root / part).rglob("*.py")
    ]
    opening = [path.name for path in files if re.search(r"\bImage\.open\(", path.read_text())]
    assert opening == ["decode.py", "start.py"]  # which times the least that any program needs


@pytest.mark.parametrize("ending", ["png", "bmp", "gif", "tiff", "webp", "ppm", "jpeg"])
def test_half_a_file_is_no_image(ending: str) -> None:
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(buffer, ending)
    assert decode(buffer.getvalue()).size == (64, 64)
    with pytest.raises((OSError, SyntaxError, ValueError)):
        decode(buffer.getvalue()[: len(buffer.getvalue()) // 2])


# --------------------------------------------------------------------------- as large as is needed


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Smooth, and different in every corner."""
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    waves = 127 + 60 * np.sin(9 * across + 4 * down)
    pixels = np.stack([waves, 255 * across, 255 * down], axis=2)
    return Image.fromarray(pixels.astype(np.uint8)).convert(mode)


def as_jpeg(image: Image.Image, orientation: int = 1, **how: Any) -> bytes:
    exif, buffer = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    image.save(buffer, how.pop("format", "jpeg"), quality=95, exif=exif, **how)
    return buffer.getvalue()


def resized(image: Image.Image, side: int) -> np.ndarray:
    """What is left of an image when its shorter side is that long."""
    height, width = target_size(image.height, image.width, side)
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), int)


@pytest.mark.parametrize("size", [(1600, 1200), (1203, 1601), (1997, 803)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_that_is_decoded_smaller_is_the_same(
    size: tuple[int, int], mode: str, orientation: int
) -> None:
    content = as_jpeg(picture(*size, mode), orientation)
    whole, small = decode(content), decode(content, 64)
    assert whole.size == (size if orientation < 5 else size[::-1])
    assert 128 <= min(small.size) <= 320
    assert small.mode == "RGB"
    assert np.abs(resized(small, 64) - resized(whole, 64)).max() <= 3


@pytest.mark.parametrize("how", [{"progressive": True}, {"subsampling": 0}, {"format": "mpo"}])
def test_so_are_other_kinds_of_jpeg(how: dict[str, Any]) -> None:
    content = as_jpeg(picture(1203, 901), 6, **how)
    small = decode(content, 64)
    assert 128 <= min(small.size) <= 320
    assert np.abs(resized(small, 64) - resized(decode(content), 64)).max() <= 3


def test_no_pixel_is_cut_off_differently_because_it_was_decoded_smaller() -> None:
    chance = np.random.default_rng(0)
    for width, height in chance.integers(150, 900, (200, 2)).tolist():
        small = decode(as_jpeg(Image.new("L", (width, height))), 24)
        whole, found = (target_size(h, w, 24) for w, h in ((width, height), small.size))
        assert found == whole, (width, height, small.size)
        assert min(small.size) >= min(48, width, height)


@pytest.mark.parametrize("ending", ["png", "webp", "tiff", "bmp"])
def test_what_is_no_jpeg_or_small_already_stays_as_it_is(ending: str) -> None:
    buffer = io.BytesIO()
    picture(403, 302).save(buffer, ending)
    assert decode(buffer.getvalue(), 32).size == (403, 302)
    content = as_jpeg(picture(127, 95))
    assert np.array_equal(decode(content, 64), decode(content))


def test_half_a_photograph_is_none_even_if_it_is_decoded_smaller() -> None:
    content = as_jpeg(picture(1600, 1200))
    with pytest.raises(OSError, match="truncated"):
        decode(content[: len(content) // 2], 64)


def test_the_side_that_a_preprocessing_needs() -> None:
    assert Preprocessing(256, (224, 224)).side == 256
    assert Preprocessing((200, 300), None).side == 300
    assert Preprocessing(None, (224, 224)).side is None  # it cuts out pixels as they are


def test_pillow_is_as_it_was_when_the_last_of_several_readers_ends() -> None:
    limit, filters = Image.MAX_IMAGE_PIXELS, list(warnings.filters)
    first, second = reading_images(), reading_images()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Image.MAX_IMAGE_PIXELS is None  # the second one is still reading
    second.__exit__(None, None, None)
    assert limit == Image.MAX_IMAGE_PIXELS
    assert filters == warnings.filters
