"""A results folder: one file per run, per failed run and per table; races in lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError
from frugalvae.files import json_object, locked, write_json, write_text
from frugalvae_lab.bench.grid import Cell


class Results:
    """A results folder.

    ``runs`` has one file for each finished run, named by its key, a hash of the settings
    that are not defaults; ``races`` the runs of races, which are thousands: one file for each
    data set, one line for each run, scores and cost alone; ``failed`` the runs that raised an
    error, with the traceback; ``tables`` what was asked for, which is what a report is made
    from; ``encoded`` features of encoders that were trained on the way, which can be made
    again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read_lines: dict[str, dict[str, dict[str, Any]]] = {}

    def prepare(self) -> None:
        """Create the folder, or raise."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; give the name of a folder for results")
        for name in ("runs", "races", "failed", "tables", "encoded"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a finished run with these settings; ``None`` if there is none.

        A file that cannot be read, or that is not what its name says, does not count. Nor does
        a run with another setting than this cell's, because a default was another then.
        """
        record = self._lines(cell).get(cell.key) if cell.brief else _read(self._file("runs", cell))
        if record is None or record.get("key") != cell.key:
            return None
        if not cell.agrees(record.get("settings") or {}):
            return None
        if cell.every_task and not record.get("every_task"):
            return None
        return record

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write the record of a run, and forget an earlier failure."""
        about = {"key": cell.key, "every_task": cell.every_task, "settings": cell.settings()}
        if cell.brief:
            self._write_line(cell, about | brief(record))
        else:
            write_json(self._file("runs", cell), about | record)
        self._file("failed", cell).unlink(missing_ok=True)

    def runs(self) -> Iterator[str]:
        """The keys of all runs that are there."""
        for path in sorted((self.folder / "runs").glob("*.json")):
            yield str((_read(path) or {}).get("key", path.name))
        for path in sorted((self.folder / "races").glob("*.jsonl")):
            yield from _read_lines(path)

    def _lines(self, cell: Cell) -> dict[str, dict[str, Any]]:
        """The runs of races on a cell's data by their keys, as they were when first asked for."""
        if cell.data not in self._read_lines:
            self._read_lines[cell.data] = _read_lines(self._race(cell))
        return self._read_lines[cell.data]

    def _write_line(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write all lines anew with this one, those that other processes wrote included."""
        path = self._race(cell)
        with locked(path, "bench run", wait=60):
            lines = _read_lines(path) | {cell.key: record}
            ordered = sorted(lines.values(), key=_order)
            write_text(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in ordered))
        self._read_lines[cell.data] = lines

    def fail(self, cell: Cell, traceback: str) -> None:
        """Write the traceback of a failed run."""
        content = {"key": cell.key, "settings": cell.settings(), "traceback": traceback}
        write_json(self._file("failed", cell), content)

    def failure(self, cell: Cell) -> str | None:
        """The traceback of a run that failed; ``None`` if it did not."""
        content = _read(self._file("failed", cell))
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

    def _file(self, folder: str, cell: Cell) -> Path:
        return self.folder / folder / f"{cell.name}.json"

    def _race(self, cell: Cell) -> Path:
        return self.folder / "races" / f"{cell.data}.jsonl"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def brief(record: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run of a race: scores, cost, and seconds of all tasks together."""
    cost = {name: record["memory"][name] for name in ("paper", "stored", "bytes")}
    seconds = {
        part: round(sum(task[part] for task in record["seconds"]), 3)
        for part in ("learn", "predict")
    }
    kept = {name: record[name] for name in ("versions", "metrics", "warnings")}
    return kept | {"memory": cost, "seconds": [seconds]}


def _read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """Runs by key, one a line; lines that cannot be read do not count."""
    try:
        found = map(json_object, path.read_text("utf-8").splitlines())
    except (OSError, ValueError):
        return {}
    return {record["key"]: record for record in found if record and "key" in record}


def _order(record: dict[str, Any]) -> tuple[Any, ...]:
    """Runs of one method together, so that the difference of two versions is short."""
    settings = record["settings"]
    names = settings["memory"]["name"], settings["head"]["name"]
    stream = str(settings["shots"]), str(settings["long_tail"])
    return *names, *stream, settings["seed"], record["key"]
