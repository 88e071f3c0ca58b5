"""EfficientNet-Lite from PyTorch's checkpoint to ONNX, without PyTorch, onnx and unpickling.

- :func:`read_checkpoint`: such a file is a pickle, and to unpickle is to run what the file says.
  Here its few instructions that make a dictionary of tensors are followed, one by one, and nothing
  is called: whatever else is in a file is an error. The format is the one that PyTorch wrote
  before version 1.6: five pickles, then the numbers of each storage.
- :func:`as_onnx`: the network of these weights, operation by operation.
- :class:`Graph`: as much of the format ONNX as that needs.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.defaults import weights_digest
from frugalvae.errors import InputError

# --------------------------------------------------------------------------- the checkpoint

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
NEW_DICT, NEW_TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
STORAGES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch LongStorage": np.dtype("<i8"),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = {"BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Name:
    """Something that the file names; it is compared, never looked up."""

    text: str


@dataclass(frozen=True)
class Storage:
    """A row of numbers, which stands behind the pickles."""

    key: str
    dtype: np.dtype[Any]
    length: int


@dataclass(frozen=True)
class View:
    """A tensor: which numbers of a storage, in what shape."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def fits(self) -> bool:
        """Whether all of it lies within its storage, and no number is taken twice."""
        numbers = (self.offset, *self.shape, *self.strides)
        if len(self.shape) != len(self.strides) or not all(map(_is_count, numbers)):
            return False
        if prod(self.shape) > self.storage.length:
            return False
        ends = zip(self.shape, self.strides, strict=True)
        last = self.offset + sum((size - 1) * stride for size, stride in ends)
        return not prod(self.shape) or last < self.storage.length

    def of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The tensor as an array of its own."""
        strides = [stride * numbers.itemsize for stride in self.strides]
        view = np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, strides)
        return np.array(view, order="C")


def read_checkpoint(path: str | Path) -> dict[str, NDArray[Any]]:
    """The tensors of a state dict, by name.

    >>> read_checkpoint("absent.pth")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent.pth: there is no such file; check the path
    """
    try:
        file = io.BytesIO(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check the path") from error
    try:
        return _read(file)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: no checkpoint of tensors alone, as PyTorch before 1.6 wrote them "
            f"({error}); install the package that it comes with anew"
        ) from error


def _read(file: BinaryIO) -> dict[str, NDArray[Any]]:
    if _follow(file) != MAGIC or _follow(file) != VERSION:
        raise ValueError("it does not begin as one")
    if _follow(file)["little_endian"] is not True:
        raise ValueError("its numbers are not little-endian")
    views, keys = _follow(file), _follow(file)
    for name, view in views.items():
        if not isinstance(view, View) or not view.fits():
            raise ValueError(f"{name!r} is no tensor within its storage")
    storages = {view.storage.key: view.storage for view in views.values()}
    numbers = {key: _numbers(file, storages[key]) for key in keys}
    return {name: view.of(numbers[view.storage.key]) for name, view in views.items()}


def _numbers(file: BinaryIO, storage: Storage) -> NDArray[Any]:
    length = int.from_bytes(file.read(8), "little")
    size = length * storage.dtype.itemsize
    if length != storage.length or len(content := file.read(size)) != size:
        raise ValueError(f"storage {storage.key!r} has not the {storage.length} numbers it should")
    return np.frombuffer(content, storage.dtype)


def _follow(file: BinaryIO) -> Any:
    """What the next pickle describes: values, tuples, lists, dictionaries, and tensors."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    marks: list[int] = []

    def since(start: int) -> list[Any]:
        values = stack[start:]
        del stack[start:]
        return values

    argument: Any
    for opcode, argument, _ in pickletools.genops(file):
        match opcode.name:
            case "PROTO":
                pass
            case "STOP":
                return stack.pop()
            case "MARK":
                marks.append(len(stack))
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "GLOBAL":
                stack.append(Name(argument))
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "TUPLE":
                stack.append(tuple(since(marks.pop())))
            case "APPEND" | "APPENDS" as name:
                items = since(marks.pop() if name == "APPENDS" else len(stack) - 1)
                stack[-1].extend(items)
            case "SETITEM" | "SETITEMS" as name:
                items = since(marks.pop() if name == "SETITEMS" else len(stack) - 2)
                stack[-1].update(_entries(items))
            case "BINPERSID":
                stack.append(_storage(*stack.pop()))
            case "REDUCE":
                stack.append(_made(*since(len(stack) - 2)))
            case "BUILD":
                stack.pop()  # which versions of its layers a network had
            case name if name in VALUES:
                stack.append(argument)
            case name if name in CONSTANTS:
                stack.append(CONSTANTS[name])
            case name if name in TUPLES:
                stack.append(tuple(since(len(stack) - TUPLES[name])))
            case name:
                raise ValueError(f"it has {name}, which no tensor needs")
    raise ValueError("it ends early")


def _entries(items: list[Any]) -> dict[str, Any]:
    keys, values = items[::2], items[1::2]
    if not all(isinstance(key, str) for key in keys):
        raise ValueError("it has an entry without a name")
    return dict(zip(keys, values, strict=True))


def _storage(
    kind: object, dtype: object, key: object, _: object, length: object, view: object
) -> Storage:
    """A storage that the file refers to: ("storage", type, key, device, length, None)."""
    if kind != "storage" or view is not None or not isinstance(dtype, Name):
        raise ValueError("it refers to something else than numbers")
    if dtype.text not in STORAGES or not isinstance(key, str) or not _is_count(length):
        raise ValueError(f"it has numbers of the kind {dtype.text!r}")
    return Storage(key, STORAGES[dtype.text], length)


def _made(what: object, arguments: Any) -> Any:
    """What two functions would make, if they were called: a dictionary, or a tensor."""
    if what == Name(NEW_DICT) and arguments == ():
        return {}
    if what == Name(NEW_TENSOR):
        storage, offset, shape, strides, *_ = arguments
        if isinstance(storage, Storage):
            return View(storage, offset, tuple(shape), tuple(strides))
    raise ValueError(f"it calls {what.text if isinstance(what, Name) else 'a value'}")


def _is_count(number: object) -> TypeGuard[int]:
    return type(number) is int and number >= 0


# --------------------------------------------------------------------------- the network

STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # blocks, stride of the first
EPSILON = 1e-3  # of the batch norms
IMAGES = "images"  # the graph's input

Weights = Mapping[str, NDArray[Any]]


def as_onnx(weights: Weights, depth: float) -> bytes:
    """The network up to its features, for images of any size.

    Each batch norm is folded into the convolution before it. Channels and kernels are
    those of the weights; ``depth`` says how many blocks there are.
    """
    graph = Graph(IMAGES, ["n", 3, "height", "width"])
    bounds = graph.constant(np.float32(0)), graph.constant(np.float32(6))

    def convolve(x: str, layer: str, norm: str, stride: int = 1, *, bounded: bool = True) -> str:
        kernel, shift = folded(weights, layer, norm)
        x = graph.add(
            "Conv",
            x,
            graph.constant(kernel),
            graph.constant(shift),
            auto_pad="SAME_UPPER",  # as TensorFlow pads
            group=len(kernel) if layer.endswith("_depthwise_conv") else 1,
            kernel_shape=kernel.shape[2:],
            strides=[stride, stride],
        )
        return graph.add("Clip", x, *bounds) if bounded else x

    def block(x: str, name: str, stride: int) -> str:
        y, expand = x, f"{name}._expand_conv"
        if f"{expand}.weight" in weights:
            y = convolve(y, expand, f"{name}._bn0")
        y = convolve(y, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        return convolve(y, f"{name}._project_conv", f"{name}._bn2", bounded=False)

    x = convolve(IMAGES, "_conv_stem", "_bn0", 2)
    for number, (stride, repeated) in enumerate(blocks(depth)):
        y = block(x, f"_blocks.{number}", stride)
        x = graph.add("Add", x, y) if repeated else y
    x = convolve(x, "_conv_head", "_bn1")  # (n, 1280, height / 32, width / 32)
    features = graph.add("Flatten", graph.add("GlobalAveragePool", x))  # (n, 1280)
    return graph.to_bytes(features, ["n", 1280], weights=weights_digest(weights))


def blocks(depth: float) -> Iterator[tuple[int, bool]]:
    """Of each block its stride, and whether it is a repetition, which has a shortcut.

    The first stage and the last are as deep in all variants.

    >>> len(list(blocks(1.0))), len(list(blocks(1.2)))
    (16, 21)
    """
    for number, (count, stride) in enumerate(STAGES):
        yield stride, False
        fixed = number in (0, len(STAGES) - 1)
        yield from [(1, True)] * (count - 1 if fixed else ceil(count * depth) - 1)


def folded(
    weights: Weights, layer: str, norm: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and shift of a convolution that is followed by a batch norm."""
    kernel = weights[f"{layer}.weight"].astype(np.float64)
    mean, variance = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
    scale = weights[f"{norm}.weight"] / np.sqrt(variance.astype(np.float64) + EPSILON)
    shift = weights[f"{norm}.bias"] - mean * scale
    return (kernel * scale[:, None, None, None]).astype(np.float32), shift.astype(np.float32)


# --------------------------------------------------------------------------- the format

IR_VERSION, OPSET = 8, 17  # of 2022: read by every ONNX Runtime since 1.12
TYPES = {"float32": 1, "int64": 7}
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

    def to_bytes(self, output: str, shape: Sequence[int | str], **metadata: str) -> bytes:
        """The file, with what it says of itself."""
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
        model += [(14, message([(1, key), (2, value)])) for key, value in metadata.items()]
        return message(model)


def message(fields: Sequence[Field]) -> bytes:
    """Numbered fields, one after the other.

    >>> message([(1, 300), (2, "a")]).hex(" ")
    '08 ac 02 12 01 61'
    """
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [varint(number << 3 | 2), varint(len(content)), content]
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
