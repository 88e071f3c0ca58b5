"""Give runs the names of today's keys: ``python -m lab.benchmarks.rekey results``.

A run's key was once a hash of all its settings. It is a hash of those that differ from the
defaults now. Each record tells all its settings, so that nothing has to be run again. Runs
that have their name already are left alone, so that the command can be repeated. A run that
comes with an old name takes the place of one that has the new name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from frugalvae.files import write_json
from frugalvae_lab.bench.grid import Cell
from frugalvae_lab.bench.specification import Part


def cell_of(settings: dict[str, Any], every_task: bool) -> Cell:
    """The cell that a record was made for."""
    about = {key: value for key, value in settings.items() if key != "results"}
    for kind in ("memory", "head", "encoder"):
        if about.get(kind):
            known = dict(about[kind])
            about[kind] = Part(kind, known.pop("name"), {}, known)
    return Cell(**about, every_task=every_task)


def rekey(results: Path) -> int:
    """Rename what has an old key in ``runs`` and ``failed``; how many files that were."""
    renamed = 0
    for folder in ("runs", "failed"):
        for path in sorted((results / folder).glob("*.json")):
            record = json.loads(path.read_text("utf-8"))
            cell = cell_of(record["settings"], record.get("every_task", True))
            if (path.stem, record["key"]) == (cell.name, cell.key):
                continue
            write_json(path.with_name(f"{cell.name}.json"), record | {"key": cell.key})
            if path.stem != cell.name:
                path.unlink()
            renamed += 1
    return renamed


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["results"]:
        print(f"{argument}: {rekey(Path(argument))} runs renamed")
