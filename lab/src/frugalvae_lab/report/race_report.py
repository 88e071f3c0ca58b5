"""A race as a page, as Markdown, or as one line of CSV per run."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from frugalvae.formatting import as_cell
from frugalvae_lab.report import plots, race_plots
from frugalvae_lab.report.race import Race
from frugalvae_lab.report.render import decimal, render, sizes
from frugalvae_lab.report.results_table import Table

BYTES = "bytes kept, head included (logarithmic)"
SCORES = ("final_average_accuracy", "accuracy", "macro_accuracy", "calibration_error")
FIELDS = (
    *("method", "data", "protocol", "seed", *SCORES),
    *("parameters", "bytes", "learn_seconds", "answer_seconds"),
)


def to_html(table: Table) -> str:
    """One page that loads nothing from elsewhere."""
    race, podium = Race(table), Race(table).podium()
    ranks = len(race.ranks) > 2 and race_plots.critical_differences(
        race.ranks, race.critical_difference, podium
    )
    pictures = {data: _pictures(race, data, title) for data, title in race.data.items()}
    return render("race.html", **_content(race), ranks=ranks, pictures=pictures)


def to_markdown(table: Table) -> str:
    """The same tables, without plots."""
    return render("race.md", **_content(Race(table)))


def _pictures(race: Race, data: str, title: str) -> list[str]:
    """The plots of a data set."""
    found = []
    curves = {name: race.curve(data, name) for name in race.names}
    if sum(any(curve[n] is not None for curve in curves.values()) for n in (0, -1)) == 2:
        found.append(race_plots.shots(curves, race.shots, race.podium(), title))
    points = race.frontier(data)
    if len(points) > 1:
        found.append(plots.frontier(points, f"{title}, all samples", BYTES))
    return found


def _content(race: Race) -> dict[str, Any]:
    """What both forms show."""
    table = race.table
    best = {
        protocol: max((one.means[protocol] or 0.0 for one in race.standings), default=0.0)
        for protocol in race.protocols
    }
    done = [run.record for run in table.runs if run.record is not None]
    versions = dict.fromkeys(_versions(record["versions"]) for record in done)
    return {
        "race": race,
        "best": best,
        "versions": list(versions),
        "missing": [run.cell.name for run in table.runs if run.record is None],
        "example": {
            "row": table.lines[-1].row.name,
            "data": table.columns[0].data,
            "protocol": table.columns[0].protocol,
        },
    }


def _versions(told: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in told.items())


def to_csv(table: Table) -> str:
    """One line per run; shares from 0 to 1."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for line, column, entry in table.entries:
        for run in entry.runs:
            if run.record is None:
                continue
            place = (line.row.name, column.data, column.protocol, run.cell.seed)
            scores = [f"{run.record['metrics'][score]:.6g}" for score in SCORES]
            cost = [run.record["memory"][name] for name in ("stored", "bytes")]
            spent = [
                f"{sum(task[part] for task in run.record['seconds']):.3f}"
                for part in ("learn", "predict")
            ]
            values = (*place, *scores, *cost, *spent)
            writer.writerow(dict(zip(FIELDS, map(as_cell, values), strict=True)))
    return text.getvalue()


def summary(table: Table, keep: str = "store all, cosine") -> str:
    """Ours, the best three rivals and storing everything, as a table in Markdown.

    It has the columns that all methods have.
    """
    race = Race(table)
    rivals = [name for name in race.podium(4)[1:] if name != keep][:3]
    names = [name for name in race.names if name not in race.rivals] + rivals
    names += [keep] * (keep in race.names)
    standings = {one.name: one for one in race.standings}
    shown = [p for p in race.protocols if any(one.means[p] for one in standings.values())]
    lines = [["samples per class", *shown, "rank", "kept"]]
    lines.append(["---"] * len(lines[0]))
    for name in names:
        one = standings[name]
        best = [max(standings[n].means[p] or 0.0 for n in standings) for p in shown]
        cells = [
            f"**{decimal(mean)}**" if mean is not None and mean == top else decimal(mean)
            for mean, top in zip((one.means[p] for p in shown), best, strict=True)
        ]
        lines.append([name, *cells, decimal(one.rank), sizes(one.bytes)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


#: The function that writes each format.
FORMATS: dict[str, Callable[[Table], str]] = {
    "html": to_html,
    "md": to_markdown,
    "csv": to_csv,
}
