"""``frugalvae serve`` in a process of its own, with an encoder of colours, which is quick."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lab.benchmarks.serving import Served as AnyServed
from lab.benchmarks.serving import form

__all__ = ["START", "Served", "form", "in_a_loop"]

T = TypeVar("T")

START = """
import sys
from frugalvae import encoders
from tests.colours import Colours
encoders.make_encoder = lambda _, **__: Colours()
from frugalvae.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


class Served(AnyServed):
    """A server whose features are average colours."""

    def __init__(self, file: Path, *options: object) -> None:
        super().__init__(file, *options, how=("-c", START), OMP_NUM_THREADS="1")


def in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in a thread of its own: a browser of other tests may have this one's
    event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
