"""ONNX files: networks of ours are written, and those of others read, without the library onnx.

A file is a message of protocol buffers: a row of fields, each a number and a value. The numbers
are those of ``onnx.proto``, and there is just as much of the format as is needed here.

Large weights may stand in other files, which the graph names. ONNX Runtime would open paths that
it finds there. So they are read here, from the graph's own folder alone, and all is handed over in
memory: what was digested is what it computes with. What it might read otherwise is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError

IR_VERSION, OPSET = 8, 17  # of 2022: read by every ONNX Runtime since 1.12
TYPES = {"float32": 1, "int64": 7}
VARINT, BYTES = 0, 2  # how a field's value is written
FORMS = {VARINT: 0, 1: 8, BYTES: 0, 5: 4}  # and how long it is, if that is fixed
INT, STRING, INTS = 2, 3, 7  # kinds of attributes

Field = tuple[int, int | str | bytes]
#: The messages inside a message. What else may stand in it, and names no file, is in PLAIN.
INSIDE = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "weights"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "nested graph", 10: "tensor", 11: "nested graph"},
    "nested graph": {1: "node", 5: "tensor"},
    "weights": {13: "entry"},
}
_GRAPH, _TENSOR = {2, 10, 11, 12, 13, 14, 16}, {*range(1, 13), 14, 16}
PLAIN = {
    "model": {1, 2, 3, 4, 5, 6, 8, 14},
    "graph": _GRAPH,
    "nested graph": _GRAPH,
    "node": {1, 2, 3, 4, 6, 7, 8, 9},
    "attribute": {1, 2, 3, 4, 7, 8, 9, 13, 14, 15, 20, 21},
    "weights": _TENSOR,
    "tensor": _TENSOR,
    "entry": {1, 2},
}
#: What exporters write that is refused, as people call it.
REFUSED = {
    ("model", 20): "training information",
    ("model", 25): "functions",
    ("graph", 15): "sparse weights",
    ("tensor", 13): "weights in another file that are none of its graph's own",
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

    @cached_property
    def digest(self) -> str:
        """A short name of every byte of it: other weights, another name."""
        digest = hashlib.sha256(self.content)
        for name, content in sorted(self.files.items()):  # of fixed lengths: none passes for two
            digest.update(hashlib.sha256(name.encode()).digest())
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()[:16]


def read_model(path: Path) -> OnnxModel:
    """A model of a file; what it names must lie in its folder."""
    if not path.is_file():
        raise InputError(f"{path}: no file, or none that ends; copy it anew")
    try:
        content = path.read_bytes()
        names = sorted(set(named_files(content)))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no ONNX file ({error}); copy it anew") from error
    return OnnxModel(content, {name: _beside(path, name).read_bytes() for name in names})


def _beside(path: Path, name: str) -> Path:
    """A file in the folder of another; a link may lead to where that one's leads.

    Only a plain name is one: ONNX Runtime takes ``./w`` for ``w``, and some paths for addresses.
    """
    plain = "\0" not in name and all(
        name == kind(name).name for kind in (PurePosixPath, PureWindowsPath)
    )
    found = (path.parent / name).resolve() if plain else path
    homes = (path.parent.resolve(), path.resolve().parent)
    if not plain or found.parent not in homes:
        raise InputError(
            f"{path}: it wants to read {name}, which is not in its folder; use a model that "
            "keeps its weights beside itself"
        )
    if not found.is_file():
        raise InputError(f"{path}: its weights are in {name}, which is missing; copy it as well")
    return found


def named_files(content: bytes) -> Iterator[str]:
    """The files that the weights of a model stand in.

    Whatever else might name one is refused: ONNX Runtime opens files of nested graphs by itself.

    >>> list(named_files(b""))
    []
    """
    waiting = [("model", 0, len(content), 0)]
    while waiting:
        kind, start, end, depth = waiting.pop()
        if depth > 4 * DEEPEST:
            raise ValueError("its graphs are nested too deep")
        entry: dict[int, bytes] = {}
        for number, form, first, last in fields(content, start, end):
            inner = INSIDE.get(kind, {}).get(number)
            if inner is not None and form == BYTES:
                waiting.append((inner, first, last, depth + 1))
            elif number not in PLAIN[kind]:
                what = REFUSED.get((kind, number), f"a field {number} in its {kind}")
                raise ValueError(f"it has {what}, which is not read here; export it without")
            elif kind == "entry":
                entry[number] = content[first:last]
        if entry.get(1) == b"location":
            yield entry.get(2, b"").decode()


def fields(content: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, start and end of the value of each field of a message.

    What ONNX Runtime might take for something else is refused: it reads 32 bits of a tag.

    >>> list(fields(bytes.fromhex("08ac02120161"), 0, 6))
    [(1, 0, 1, 3), (2, 2, 5, 6)]
    """
    while start < end:
        tag, start = varint_at(content, start, end)
        number, form = tag >> 3, tag & 7
        if not number or tag >= 2**32 or form not in FORMS:
            raise ValueError("it is not in the format of protocol buffers")
        if form == VARINT:
            _, last = varint_at(content, start, end)
        else:
            length = FORMS[form]
            if form == BYTES:
                length, start = varint_at(content, start, end)
            last = start + length
        if last > end:
            raise ValueError("it is cut off")
        yield number, form, start, last
        start = last


def varint_at(content: bytes, start: int, end: int) -> tuple[int, int]:
    """A number that stands somewhere, and where it ends."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(start, end), strict=False):
        value |= (content[place] & 127) << shift
        if content[place] < 128:
            if value >= 2**64:
                raise ValueError("it has a number of more than 64 bits")
            return value, place + 1
    raise ValueError("it is cut off, or has a number of more than 64 bits")
