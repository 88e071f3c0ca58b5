"""The device to compute on is chosen in one place."""

from __future__ import annotations

from pathlib import Path

import torch

import frugalvae
from frugalvae.maths.arrays import computing_on, find_device
from frugalvae.parts.tensors import device_of


def test_only_one_module_asks_for_a_gpu() -> None:
    root = Path(frugalvae.__file__).parent
    asking = [path for path in root.rglob("*.py") if "is_available()" in path.read_text()]
    assert [path.relative_to(root).as_posix() for path in asking] == ["maths/arrays.py"]


def test_a_name_comes_first_then_the_block_then_what_there_is() -> None:
    with computing_on("meta"):
        assert find_device() == device_of({}) == torch.device("meta")
        assert find_device("cpu") == torch.device("cpu")
    assert find_device().type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_what_has_learned_stays_where_it_is() -> None:
    with computing_on("meta"):
        assert device_of({3: torch.zeros(2)}) == torch.device("cpu")
