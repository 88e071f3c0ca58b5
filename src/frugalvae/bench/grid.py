"""Which runs a table is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from frugalvae.bench.cell import Cell
from frugalvae.bench.spec import FIGURES, Experiment, Row


class Place(NamedTuple):
    """Where in a table a run belongs."""

    row: Row
    data: str
    protocol: str
    seed: int


def grid(experiments: Sequence[Experiment], data: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """Every run that some tables need, once; all rows of the first seed come first.

    ``data`` tells of each data set its ``fingerprint``, and its ``backbone`` if it has one.
    """
    found: dict[str, Cell] = {}
    for position in range(max(len(experiment.seeds) for experiment in experiments)):
        for experiment in experiments:
            for seed in experiment.seeds[position : position + 1]:
                own = {name: data[name] for name in experiment.data if name in data}
                for _, cell in places(experiment, own, [seed]):
                    if cell.key not in found or cell.every_task:
                        found[cell.key] = cell
    return list(found.values())


def places(
    experiment: Experiment,
    data: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int] | None = None,
) -> Iterator[tuple[Place, Cell]]:
    """All entries of a table and the run behind each; lines that are only quoted have none.

    Without ``seeds``, those of each data set.
    """
    observe = experiment.kind if experiment.kind in FIGURES else experiment.observe
    for name, about in data.items():
        if not takes(experiment, about):
            continue
        for protocol, tasks in experiment.protocols.items():
            for row in experiment.rows:
                wanted = about["seeds"] if seeds is None else seeds
                for seed in wanted if row.memory and row.head else ():
                    assert row.memory is not None
                    assert row.head is not None
                    yield (
                        Place(row, name, protocol, seed),
                        Cell(
                            name,
                            about["fingerprint"],
                            tasks,
                            row.memory,
                            row.head,
                            seed,
                            experiment.held_out,
                            experiment.encoder,
                            observe,
                            experiment.measure == "every task",
                        ),
                    )


def takes(experiment: Experiment, about: Mapping[str, Any]) -> bool:
    """Whether a table can be run on a data set.

    One with an encoder takes images; one with a head that starts from text features takes
    data that has them.
    """
    if (about["backbone"] is None) != (experiment.encoder is not None):
        return False
    starts = {row.head.settings.get("start") for row in experiment.rows if row.head}
    return "text" not in starts or about.get("text", False)
