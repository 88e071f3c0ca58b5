"""Images are known by what is in them, whatever their names say."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from frugalvae.images.decode import FORMATS, HEAD, decode, format_of
from frugalvae.samples import open_samples
from tests.test_images import picture
from tests.test_limits import scans
from tests.tool import Encoders, Tool, paint

TEXTS = [
    b"BMW makes cars and motorcycles, and so do others",
    b"P5 was the fifth driver",
    b"P6",
    b"RIFF\x24\x00\x00\x00WAVEfmt ",
    b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41",  # a film
    b"%PDF-1.7",
    b"%!PS-Adobe-3.0 EPSF-3.0",
    b"II or MM",
    b"",
    b"\xff",
]


def written(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    """A picture in a format."""
    buffer = io.BytesIO()
    if kind == "HEIF":
        heif = pytest.importorskip("pillow_heif")
        heif.from_pillow(picture(*size)).save(buffer, quality=95)
    else:
        picture(*size).save(buffer, kind)
    return buffer.getvalue()


def names() -> list[str]:
    """Of one photograph, right, wrong, odd, and without an ending."""
    return ["right.jpg", "wrong.png", "large.jpeg_large", "IMG_0001", "dots.in.name", "film.mp4"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_is_known_by_its_first_bytes(kind: str) -> None:
    content = written(kind)
    assert format_of(content[:HEAD]) == kind
    image = decode(content)
    assert image.mode == "RGB"
    assert np.abs(np.asarray(image, int) - np.asarray(picture(40, 30), int)).mean() < 12


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "AVIF"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1heicmiaf", "HEIF"),
        (b"\x00\x00\x00\x18ftypheix\x00\x00\x00\x00mif1heix", "HEIF"),
        (b"\xff\x4f\xff\x51\x00\x2f\x00\x00", "JPEG2000"),
        (b"MM\x00*\x00\x00\x00\x08", "TIFF"),
        (b"P4\n# bits\n8 8\n", "PPM"),
    ],
)
def test_other_first_bytes(head: bytes, kind: str) -> None:
    assert format_of(head) == kind


@pytest.mark.parametrize("kind", [b"P1", b"P2", b"P3"])
def test_pixels_written_as_text_are_refused(kind: bytes) -> None:
    """Pillow reads them in Python, with comments in the square of their number."""
    content = kind + b" 1 1 255\n1 1 1\n"
    assert format_of(content) is None
    with pytest.raises(ValueError, match="a PBM, PGM or PPM in plain text, which takes minutes"):
        decode(content)


@pytest.mark.parametrize("content", TEXTS)
def test_what_is_no_image_is_not_taken_for_one(content: bytes) -> None:
    assert format_of(content[:HEAD]) is None


def test_a_heic_photograph_is_decoded_only_with_its_package(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "phone.HEIC").write_bytes(written("HEIF"))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pillow_heif", None)
        said = tool.learn(images)
    assert "left out as unreadable, 1:" in said
    assert "cat/phone.HEIC: a HEIC photograph; to read it, pip install '.[heif]'" in said
    assert "1 more image of 1 known class: cat" in tool(
        "learn", images / "cat" / "phone.HEIC", "--class", "cat"
    )


def test_packages_of_rare_formats_are_imported_when_they_are_met(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(written("JPEG"))
    (tmp_path / "rare").write_bytes(written("HEIF"))
    looking = (
        "import sys; from pathlib import Path; from frugalvae.images.decode import decode\n"
        "for name in ('usual', 'rare'):\n"
        "    decode(Path(sys.argv[1], name).read_bytes()); print('pillow_heif' in sys.modules)"
    )
    command = [sys.executable, "-c", looking, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# --------------------------------------------------------------------------- what is found


def test_photographs_are_found_by_content(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat")
    for number, name in enumerate(names()):  # copies would be taught once
        (images / "cat" / name).write_bytes(written("JPEG", (40, 30 + number)))
    (images / "cat" / "text.jpg").write_text("no image")
    (images / "cat" / "notes.txt").write_text("BMW")
    (images / "cat" / "raw.NEF").write_bytes(written("TIFF"))
    os.mkfifo(images / "cat" / "pipe")
    said = tool.learn(images)
    assert "left out, not an image: 1 (cat/notes.txt)" in said
    assert "left out, not a regular file: 1 (cat/pipe)" in said
    assert "left out, a camera's raw file; convert it to JPEG: 1 (cat/raw.NEF)" in said
    assert "  cat/text.jpg: it is in no known format of images" in said
    assert encoders.images == 6 + len(names())
    answers = tool.json("predict", images / "cat", code=1)
    assert len(answers["predictions"]) == 6 + len(names())
    assert [Path(entry["input"]).name for entry in answers["unreadable"]] == ["text.jpg"]


def test_a_photograph_that_would_take_minutes_is_left_out(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat", "dax")
    (images / "cat" / "slow.jpg").write_bytes(scans(350))
    why = "cat/slow.jpg: a JPEG of 356 scans over 4000 x 3000 pixels; decoding it may take minutes"
    assert why in tool.learn(images)
    assert "of 356 scans over" in tool("predict", images / "cat", code=1)
    pytest.importorskip("jinja2", reason="pages need the extra 'report'")
    page, listed = tool.folder / "page.html", tool.folder / "list.txt"
    assert "of 356 scans over" in tool("check", images, "-o", page, "--list", listed)


def test_so_they_are_in_data_sets_and_archives(tmp_path: Path) -> None:
    content = written("JPEG", (8, 8))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for path in [f"cat/{name}" for name in names()] + ["dax/1", "dax/2"]:
            (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "set" / path).write_bytes(content)
            archive.writestr(path, content)
        for path in ("cat/notes.txt", "readme", ".hidden/cat/1", "cat/raw.dng"):
            (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "set" / path).write_text("text")
            archive.writestr(path, "text")
    for name in ("set", "set.zip"):
        with open_samples(tmp_path / name, "both") as images:
            assert sorted(set(images.labels.tolist())) == ["cat", "dax"]
            assert len(images.names) == len(names()) + 2


def test_looking_for_images_does_not_read_large_files(tool: Tool, encoders: Encoders) -> None:
    images = paint(tool.folder / "one", "cat")
    with (images / "cat" / "film").open("wb") as film:
        film.truncate(1 << 38)  # more than any memory, and no room on the disk
    assert "left out, not an image: 1 (cat/film)" in tool.learn(images)
    assert encoders.images == 6


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_and_has_no_ending_is_named(tool: Tool) -> None:
    images = paint(tool.folder / "one", "cat")
    (images / "cat" / "secret").write_bytes(written("JPEG"))
    (images / "cat" / "secret").chmod(0)
    assert "left out, not an image: 1 (cat/secret)" in tool.learn(images)
