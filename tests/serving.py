"""``frugalvae serve`` in a process of its own, with an encoder of colours, which is quick."""

from __future__ import annotations

from pathlib import Path

from benchmarks.serving import Served as AnyServed
from benchmarks.serving import form

__all__ = ["START", "Served", "form"]

START = """
import sys
from frugalvae.encoders import remembered
from tests.colours import Colours
remembered.make_frozen = lambda _, **__: Colours()
from frugalvae.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


class Served(AnyServed):
    """A server whose features are average colours."""

    def __init__(self, file: Path, *options: object) -> None:
        super().__init__(file, *options, how=("-c", START), OMP_NUM_THREADS="1")
