"""An ONNX file and what it keeps beside itself, read so that it cannot reach elsewhere.

Large weights may stand in other files, which the graph names. ONNX Runtime would open any
path that it finds there. So they are read here, from the graph's own folder alone, and
handed over in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from frugalvae.errors import InputError

#: Where in a model files may be named: for each message, its fields that matter.
INSIDE = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
DEEPEST = 64  # graphs in nodes of graphs


@dataclass(frozen=True)
class Model:
    """A graph, and the files that it names."""

    content: bytes
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A short name of all of it: other weights, another name."""
        digest = hashlib.sha256(self.content)
        for name, content in sorted(self.files.items()):
            digest.update(name.encode() + content)
        return digest.hexdigest()[:16]


def read_model(path: Path) -> Model:
    """A model of a file; what it names must lie in its folder."""
    try:
        content = path.read_bytes()
        names = sorted(set(named_files(content)))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no ONNX file ({error}); copy it anew") from error
    return Model(content, {name: _beside(path, name).read_bytes() for name in names})


def _beside(path: Path, name: str) -> Path:
    """A file in the folder of another; a link may lead to where that one's leads."""
    kinds = (PurePosixPath, PureWindowsPath)
    plain = "\0" not in name and not any(kind(name).is_absolute() for kind in kinds)
    found = (path.parent / name).resolve() if plain else path
    homes = (path.parent.resolve(), path.resolve().parent)
    if not plain or not any(found.is_relative_to(home) for home in homes):
        raise InputError(
            f"{path}: it wants to read {name}, which is not in its folder; use a model that "
            "keeps its weights beside itself"
        )
    if not found.is_file():
        raise InputError(f"{path}: its weights are in {name}, which is missing; copy it as well")
    return found


def named_files(content: bytes) -> Iterator[str]:
    """The files that tensors of a model stand in.

    >>> list(named_files(b""))
    []
    """
    waiting = [("model", 0, len(content), 0)]
    while waiting:
        kind, start, end, depth = waiting.pop()
        if depth > 4 * DEEPEST:
            raise ValueError("its graphs are nested too deep")
        for number, first, last in fields(content, start, end):
            inner = INSIDE[kind].get(number)
            if inner == "entry":
                entry = {n: content[a:b] for n, a, b in fields(content, first, last)}
                if entry.get(1) == b"location":
                    yield entry.get(2, b"").decode()
            elif inner is not None:
                waiting.append((inner, first, last, depth + 1))


def fields(content: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field of a message that has a length.

    >>> list(fields(bytes.fromhex("08ac02120161"), 0, 6))
    [(2, 5, 6)]
    """
    while start < end:
        key, start = varint_at(content, start, end)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, start = varint_at(content, start, end)
            if length > end - start:
                raise ValueError("it is cut off")
            yield number, start, start + length
            start += length
        elif kind == 0:
            _, start = varint_at(content, start, end)
        elif kind in (1, 5):
            start += 8 if kind == 1 else 4
        else:
            raise ValueError("it is not in the format of protocol buffers")
    if start > end:
        raise ValueError("it is cut off")


def varint_at(content: bytes, start: int, end: int) -> tuple[int, int]:
    """A number that stands somewhere, and where it ends."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(start, end), strict=False):
        value |= (content[place] & 127) << shift
        if content[place] < 128:
            return value, place + 1
    raise ValueError("it is cut off")
