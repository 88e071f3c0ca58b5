"""CIFAR-100 as it is distributed: an archive of pickles, read without trusting them.

``python -m frugalvae_lab.images.cifar cifar-100-python.tar.gz cifar100.zip`` makes a zip archive
of it that ``frugalvae encode`` takes.
"""

from __future__ import annotations

import io
import pickle
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError

PARTS = ("train", "test", "meta")
MOST_BYTES = 400_000_000  # of a part; the largest has 155 million
HOW = (
    "expected cifar-100-python.tar.gz as from https://www.cs.toronto.edu/~kriz/cifar.html, "
    "or the folder in it; download it again"
)


def read_cifar(path: Path) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.str_]]]:
    """Images (n, 32, 32, 3) and their classes' names, of ``"train"`` and ``"test"``."""
    try:
        parts = {part: loads(content) for part, content in _contents(path).items()}
        names = np.array([name.decode() for name in parts["meta"][b"fine_label_names"]])
        return {split: _images(parts[split], names) for split in ("train", "test")}
    except Exception as error:  # what is damaged, or meant to do damage, fails in many ways
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: not readable as CIFAR-100 ({reason}); {HOW}") from error


def is_cifar(path: Path) -> bool:
    """Whether the path is a tar archive, or a folder with the files of CIFAR-100."""
    if path.is_dir():
        return all((path / part).is_file() for part in PARTS)
    return path.is_file() and tarfile.is_tarfile(path)


def _contents(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        return {part: (path / part).read_bytes() for part in PARTS}
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name, content = PurePosixPath(member.name).name, archive.extractfile(member)
            if name in PARTS and content is not None:
                if member.size > MOST_BYTES:
                    raise ValueError(f"{name} has {member.size:,} bytes")
                found[name] = content.read()
    return found


def _images(
    part: dict[bytes, Any], names: NDArray[np.str_]
) -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Rows of 1024 red, 1024 green and 1024 blue numbers, as images; numbers as names."""
    rows, numbers = part[b"data"].bytes, np.asarray(part[b"fine_labels"])
    if rows.shape != (len(numbers), 3072):
        raise ValueError(f"images are {rows.shape}, labels are {len(numbers)}")
    if numbers.min() < 0:
        raise ValueError(f"a label is {numbers.min()}")
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), names[numbers]


class ByteArray:
    """Stands for a NumPy array of bytes in a pickle: NumPy's own would take forged pointers."""

    def __init__(self, *how: object) -> None:
        self.bytes = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        if not isinstance(kind, ByteType) or by_columns:
            raise pickle.UnpicklingError("it holds an array that is not one of bytes, by rows")
        self.bytes = np.frombuffer(content, np.uint8).reshape(shape)


class ByteType:
    """Stands for the type of its numbers."""

    def __init__(self, kind: bytes | str, *how: object) -> None:
        if kind not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"it holds an array of {kind!r}, expected bytes")

    def __setstate__(self, state: object) -> None:
        """Nothing more to know."""


#: All that a pickle may ask for; ``numpy.core`` is what NumPy 2 calls ``numpy._core``.
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): ByteArray,
    ("numpy._core.multiarray", "_reconstruct"): ByteArray,
    ("numpy", "ndarray"): ByteArray,
    ("numpy", "dtype"): ByteType,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no images need")
        return ALLOWED[module, name]


def loads(content: bytes) -> Any:
    """Unpickle plain containers and arrays of bytes, and nothing that could run.

    >>> loads(pickle.dumps({b"fine_labels": [1, 2]}))
    {b'fine_labels': [1, 2]}
    >>> loads(pickle.dumps(len))
    Traceback (most recent call last):
    ...
    _pickle.UnpicklingError: it asks for builtins.len, which no images need
    """
    return _Unpickler(io.BytesIO(content), encoding="bytes").load()


def write_zip(path: Path, output: Path) -> None:
    """An archive of folders ``train/CLASS`` and ``test/CLASS`` of image files."""
    parts = read_cifar(path)
    with zipfile.ZipFile(output, "x") as archive:
        for split, (images, labels) in parts.items():
            for number, (image, label) in enumerate(zip(images, labels, strict=True)):
                height, width, _ = image.shape
                header = b"P6 %d %d 255\n" % (width, height)  # of the simplest format
                archive.writestr(f"{split}/{label}/{number:05}.ppm", header + image.tobytes())


if __name__ == "__main__":
    write_zip(*map(Path, sys.argv[1:]))
