"""Writing networks as ONNX files: just as much of the format as ours need.

An ONNX file is a message of protocol buffers: a row of fields, each a number and a value.
The numbers are those of ``onnx.proto``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 8, 17  # of 2022: read by every ONNX Runtime since 1.12
TYPES = {"float32": 1, "int64": 7}
VARINT, BYTES = 0, 2  # how a field's value is written
INT, STRING, INTS = 2, 3, 7  # kinds of attributes

Field = tuple[int, int | str | bytes]


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
