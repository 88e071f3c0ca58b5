"""A results folder: one file per run, per failed run and per table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frugalvae.bench.grid import Cell
from frugalvae.errors import InputError
from frugalvae.files import write_json


class Results:
    """A results folder.

    ``runs`` has one file for each finished run, named by its key, a hash of the settings
    that are not defaults; ``failed`` the runs that raised an error, with the traceback;
    ``tables`` what was asked for, which is what a report is made from; ``encoded`` features
    of encoders that were trained on the way, which can be made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Create the folder, or raise."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; give the name of a folder for results")
        for name in ("runs", "failed", "tables", "encoded"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a finished run with these settings; ``None`` if there is none.

        A file that cannot be read, or that is not what its name says, does not count. Nor does
        a run with another setting than this cell's, because a default was another then.
        """
        record = _read(self._run(cell))
        if record is None or record.get("key") != cell.key:
            return None
        if not cell.agrees(record.get("settings") or {}):
            return None
        if cell.every_task and not record.get("every_task"):
            return None
        return record

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write the record of a run, and forget an earlier failure."""
        write_json(
            self._run(cell),
            {"key": cell.key, "every_task": cell.every_task, "settings": cell.settings()} | record,
        )
        self._failure(cell).unlink(missing_ok=True)

    def fail(self, cell: Cell, traceback: str) -> None:
        """Write the traceback of a failed run."""
        content = {"key": cell.key, "settings": cell.settings(), "traceback": traceback}
        write_json(self._failure(cell), content)

    def failure(self, cell: Cell) -> str | None:
        """The traceback of a run that failed; ``None`` if it did not."""
        content = _read(self._failure(cell))
        return content["traceback"] if content else None

    def write_table(self, name: str, content: dict[str, Any]) -> None:
        """Write the experiment that was asked for."""
        write_json(self.folder / "tables" / f"{name}.json", content)

    def table(self, name: str) -> dict[str, Any] | None:
        """The experiment with this name; ``None`` if there is none."""
        return _read(self.folder / "tables" / f"{name}.json")

    def tables(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name and content of all experiments that were asked for."""
        for path in sorted((self.folder / "tables").glob("*.json")):
            content = _read(path)
            if content is None:
                raise InputError(f"{path} cannot be read; run the experiment again")
            yield path.stem, content

    def _run(self, cell: Cell) -> Path:
        return self.folder / "runs" / f"{cell.name}.json"

    def _failure(self, cell: Cell) -> Path:
        return self.folder / "failed" / f"{cell.name}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
