"""ONNX files: networks of ours are written, and those of others read, without the library onnx.

A file is a message of protocol buffers: a row of fields, each a number and a value. The numbers
are those of ``onnx.proto``, and there is just as much of the format as is needed here.

Large weights may stand in other files, which the graph names. ONNX Runtime would open any path
that it finds there. So they are read here, from the graph's own folder alone, and handed over
in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError

IR_VERSION, OPSET = 8, 17  # of 2022: read by every ONNX Runtime since 1.12
TYPES = {"float32": 1, "int64": 7}
VARINT, BYTES = 0, 2  # how a field's value is written
INT, STRING, INTS = 2, 3, 7  # kinds of attributes

Field = tuple[int, int | str | bytes]
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


class Graph:
    """A network that grows by one operation at a time.

    Examples
    --------
    >>> graph = Graph("x", ["n", 3])
    >>> doubled = graph.add("Mul", "x", graph.constant(np.float32(2)))
    >>> model = graph.to_bytes(doubled, ["n", 3], made_by="hand")
    """

    def __init__(self, name: str, shape: Sequence[int | str]) -> None:
        self.input = _value(name, shape)
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []

    def constant(self, array: NDArray[Any] | np.generic) -> str:
        """The name under which operations find these numbers."""
        name = f"c{len(self.constants)}"
        tensor: list[Field] = [(1, int(size)) for size in array.shape]
        content = np.ascontiguousarray(array).tobytes()
        tensor += [(2, TYPES[str(array.dtype)]), (8, name), (9, content)]
        self.constants.append(message(tensor))
        return name

    def add(self, operation: str, *inputs: str, **attributes: int | str | Sequence[int]) -> str:
        """The name of what an operation makes of its inputs."""
        name = f"{operation}{len(self.nodes)}"
        node: list[Field] = [
            *((1, given) for given in inputs),
            (2, name),
            (3, name),
            (4, operation),
        ]
        node += [(5, _attribute(key, value)) for key, value in attributes.items()]
        self.nodes.append(message(node))
        return name

    def to_bytes(self, output: str, shape: Sequence[int | str], **told: str) -> bytes:
        """The file, with what is told about it."""
        graph = message(
            [
                *((1, node) for node in self.nodes),
                (2, "frugalvae"),
                *((5, constant) for constant in self.constants),
                (11, self.input),
                (12, _value(output, shape)),
            ]
        )
        model: list[Field] = [(1, IR_VERSION), (2, "frugalvae"), (7, graph)]
        model += [(8, message([(2, OPSET)]))]
        model += [(14, message([(1, key), (2, value)])) for key, value in told.items()]
        return message(model)


def message(fields: Sequence[Field]) -> bytes:
    """Numbered fields, one after the other.

    >>> message([(1, 300), (2, "a")]).hex(" ")
    '08 ac 02 12 01 61'
    """
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3 | VARINT), varint(value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [varint(number << 3 | BYTES), varint(len(content)), content]
    return b"".join(parts)


def varint(number: int) -> bytes:
    """A number from zero, seven bits a byte, the lowest first; the eighth bit says "more"."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    """Name, type and shape of what goes in or comes out; a size that may vary has a name."""
    sizes = [(1, message([(1 if isinstance(size, int) else 2, size)])) for size in shape]
    tensor = message([(1, TYPES["float32"]), (2, message(sizes))])
    return message([(1, name), (2, message([(1, tensor)]))])


def _attribute(name: str, value: int | str | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return message([(1, name), (3, value), (20, INT)])
    if isinstance(value, str):
        return message([(1, name), (4, value), (20, STRING)])
    return message([(1, name), *((8, number) for number in value), (20, INTS)])


@dataclass(frozen=True)
class OnnxModel:
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


def read_model(path: Path) -> OnnxModel:
    """A model of a file; what it names must lie in its folder."""
    try:
        content = path.read_bytes()
        names = sorted(set(named_files(content)))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no ONNX file ({error}); copy it anew") from error
    return OnnxModel(content, {name: _beside(path, name).read_bytes() for name in names})


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
