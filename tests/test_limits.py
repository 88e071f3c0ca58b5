"""Files that are made to do damage: what they claim is checked before anything is decoded."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from PIL import Image

from frugalvae.images.decode import (
    LARGE_PIXELS,
    MOST_BYTES,
    MOST_PIXELS,
    decode,
    memory,
    opened,
    shrunk,
    webp_size,
)
from tests.test_images import as_jpeg, picture
from tests.waiting import needs_proc

BASE = 150_000_000  # of Python and NumPy with all that they import


def png(width: int, height: int, colours: int = 6, rows: int | None = None) -> bytes:
    """A black PNG of any size; 6 is red, green, blue and opacity, 0 is grey."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    packer, row = zlib.compressobj(1), bytes(1 + width * {6: 4, 2: 3, 0: 1}[colours])
    packed = b"".join(packer.compress(row) for _ in range(height if rows is None else rows))
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", packed + packer.flush()), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


LOOK = """
import sys
from concurrent.futures import ThreadPoolExecutor
from frugalvae.images.decode import decode, reading_images
content = open(sys.argv[1], "rb").read()
def work(_):
    try:
        return str(decode(content, 64).size)
    except Exception as error:
        return str(error)
with reading_images(), ThreadPoolExecutor(int(sys.argv[2])) as pool:
    print(sorted(set(pool.map(work, range(int(sys.argv[2]))))))
"""
PEAK = """
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_of(script: str, *words: object) -> tuple[str, int]:
    """What a script prints, and the most bytes of memory that it has taken."""
    command = [sys.executable, "-c", script + PEAK, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    return "\n".join(said), 1024 * int(peak)


@needs_proc
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: png(60_000, 60_000, 0, rows=2_000), "60000 x 60000 are more than 250,000,000"),
        (lambda: icon(png(60_000, 60_000, 0, rows=2_000)), "it is in no known format of images"),
        (lambda: webp(16_383, 16_383), "16383 x 16383 are more than"),
        (lambda: webp(1 << 24, 1 << 24), "16777216 x 16777216 are more than"),
        (lambda: jpeg2000(11_000, 11_000), "11000 x 11000 are more than the 100,000,000 pixels"),
        (lambda: b"P6 20000 20000 255\n", "20000 x 20000 are more than"),
        (lambda: tiles(60_000), "its tiles of 60000 x 60000 pixels are larger than the image"),
    ],
    ids=["png", "ico", "webp", "vast webp", "jpeg2000", "ppm", "tiff"],
)
def test_what_is_too_large_is_refused_before_it_is_decoded(
    tmp_path: Path, make: object, message: str
) -> None:
    assert callable(make)
    (tmp_path / "it").write_bytes(make())
    said, peak = peak_of(LOOK, tmp_path / "it", 2)
    assert message in said
    assert peak < BASE


def icon(content: bytes) -> bytes:
    """An ICO around a PNG."""
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(content), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + content


def webp(width: int, height: int) -> bytes:
    """A WebP that claims to be of that size."""
    buffer = io.BytesIO()
    Image.new("RGBA", (8, 8), (1, 2, 3, 4)).save(buffer, "webp")
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    claim = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + size
    body = b"WEBP" + claim + buffer.getvalue()[12:]
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg2000(width: int, height: int) -> bytes:
    """A JPEG 2000 that claims to be of that size."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64)).save(buffer, "jpeg2000", no_jp2=True)
    content = bytearray(buffer.getvalue())
    content[8:16] = struct.pack(">II", width, height)
    return bytes(content)


def tiles(side: int) -> bytes:
    """A TIFF of 64 x 64 grey pixels that claims to have tiles of that size."""
    packed = zlib.compress(bytes(64 * 64))
    tags = {256: 64, 257: 64, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side}
    tags |= {324: 8 + 2 + 12 * 10 + 4, 325: len(packed)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + packed


@needs_proc
def test_large_images_are_decoded_one_at_a_time_and_without_copies(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(png(7_500, 7_500))
    said, peak = peak_of(LOOK, tmp_path / "it", 3)
    assert said == "['(130, 130)']"
    assert peak < BASE + 4 * 7_500 * 7_500 + 100_000_000  # one copy in all, not one per thread


ENCODE = """
import sys
from pathlib import Path
from frugalvae.samples import open_samples
from frugalvae.images.photographs import encode_files
from tests.colours import Colours
with open_samples(sys.argv[1], "learning") as images:
    done = encode_files(images.files, Colours(), 4, threads=6)
print(len(done.places), sorted(set(done.reasons.values())), sorted(images.skipped.values()))
"""


@needs_proc
def test_an_archive_that_unpacks_to_gigabytes_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "png")
    with zipfile.ZipFile(
        tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as packed:
        for number in range(6):  # images with nothing behind them, 40 MB each
            packed.writestr(f"cat/{number}.png", buffer.getvalue() + bytes(40_000_000))
        packed.writestr("cat/huge.png", bytes(MOST_BYTES + 1))
    assert (tmp_path / "set.zip").stat().st_size < 8_000_000
    monkeypatch.chdir(Path(__file__).parent.parent)
    said, peak = peak_of(ENCODE, tmp_path / "set.zip")
    assert said == "6 [] ['too large (300.0 MB, the most is 300.0 MB)']"
    assert peak < BASE + 3 * 40_000_000


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16", "CMYK"])
@pytest.mark.parametrize("side", [10, 100])
def test_an_image_that_is_made_smaller_in_strips_is_the_same(
    mode: str, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As converting all of it at once, and averaging then."""
    monkeypatch.setattr("frugalvae.images.decode.STRIP_PIXELS", 5_000)
    image = picture(301, 203, "L" if mode == "I;16" else "RGB")
    image = (
        image.convert("I").point(lambda grey: grey * 257).convert(mode)
        if mode == "I;16"
        else (image.convert(mode))
    )
    buffer = io.BytesIO()
    image.save(buffer, "tiff")
    content = buffer.getvalue()
    whole = decode(content)
    factor = max(203 // (2 * side), 1)
    assert shrunk(opened(content, "TIFF"), side).tobytes() == whole.reduce(factor).tobytes()


def test_a_large_photograph_is_upright_when_it_is_made_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("frugalvae.images.decode.LARGE_PIXELS", 1_000)
    for orientation in range(1, 9):
        buffer, exif = io.BytesIO(), Image.Exif()
        exif[0x0112] = orientation
        picture(300, 200).save(buffer, "png", exif=exif)
        small = decode(buffer.getvalue(), 20)
        assert small.size == ((60, 40) if orientation < 5 else (40, 60))
        monkeypatch.setattr("frugalvae.images.decode.LARGE_PIXELS", LARGE_PIXELS)
        assert small.tobytes() == decode(buffer.getvalue()).reduce(5).tobytes()
        monkeypatch.setattr("frugalvae.images.decode.LARGE_PIXELS", 1_000)


def test_sizes_are_read_from_the_beginning_of_a_webp() -> None:
    for how in ({"lossless": True}, {"quality": 80}, {"quality": 80, "exif": b"Exif\0\0x"}):
        for size in ((403, 302), (1, 700)):
            buffer = io.BytesIO()
            picture(*size).save(buffer, "webp", **how)
            assert webp_size(buffer.getvalue()) == size


def test_photographs_of_telephones_are_not_large() -> None:
    """They are decoded smaller, so that threads need not wait for each other."""
    content = as_jpeg(Image.new("RGB", (4000, 3000)))
    assert memory(opened(content, "JPEG"), "JPEG", 224) < 20_000_000
    assert MOST_PIXELS > 200_000_000
