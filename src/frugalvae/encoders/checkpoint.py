"""Weights from a file that PyTorch wrote, without PyTorch and without unpickling.

Such a file is a pickle, and to unpickle is to run what the file says. Here its few
instructions that make a dictionary of tensors are followed, one by one, and nothing is
called: whatever else stands in a file is an error. The format is the one that PyTorch
wrote before version 1.6: five pickles, then the numbers of each storage.
"""

from __future__ import annotations

import io
import pickletools
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from frugalvae.errors import InputError

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
        taken = stack[start:]
        del stack[start:]
        return taken

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
                raise ValueError(f"it says {name}, which no tensor needs")
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
