"""``frugalvae-lab report``: tables of results, or a race, as HTML, Markdown or CSV.

HTML has figures besides.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from frugalvae.errors import InputError, check_choice
from frugalvae.files import check_place, write_text
from frugalvae.formatting import as_cell, plural
from frugalvae_lab.bench.metrics import accuracy_by_task
from frugalvae_lab.report import frontier, plots
from frugalvae_lab.report.race import Race
from frugalvae_lab.report.render import decimal, render, sizes
from frugalvae_lab.report.tables import Table, read_tables, unique_runs

FORMS = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv"}
BYTES = "bytes kept, head included (logarithmic)"
SCORES = ("final_average_accuracy", "accuracy", "macro_accuracy", "calibration_error")


def write_report(
    results: Path, output: Path, name: str | None = None, trust: tuple[str, ...] = ()
) -> str:
    """Write a report; returns one line about what is in it.

    Parameters
    ----------
    results
        A folder that ``frugalvae-lab bench run`` wrote.
    output
        The file. Its ending decides the format.
    name
        The table to write alone; by default all but races, which are pages of their own.
    trust
        Modules and classes that the tables may name: no other is imported.
    """
    ending = output.suffix.lower()
    if ending not in FORMS:
        raise InputError(f"{output} has the ending {ending!r}; use one of {', '.join(FORMS)}")
    check_place(output)
    tables = chosen(read_tables(results, trust), name)
    write_text(output, as_text(tables, FORMS[ending]))
    runs = list(unique_runs(tables).values())
    done = sum(run.record is not None for run in runs)
    failed = sum(run.record is None and run.failure is not None for run in runs)
    return (
        f"{output}: {plural(len(tables), 'table')}, {done} of {len(runs)} runs, "
        f"{len(runs) - done - failed} missing, {failed} failed"
    )


def chosen(tables: Sequence[Table], name: str | None) -> list[Table]:
    """The table of that name, or else all that are no races; if all are, the first."""
    if name is not None:
        check_choice("table", name, [table.name for table in tables])
        return [table for table in tables if table.name == name]
    return [table for table in tables if table.experiment.kind != "race"] or list(tables[:1])


def as_text(tables: Sequence[Table], form: str) -> str:
    """A report in one of :data:`FORMS`: of a race alone, or of tables."""
    if tables[0].experiment.kind == "race":
        race = Race(tables[0])
        return race_csv(race) if form == "csv" else race_page(race, form)
    if form == "csv":
        return tables_csv(tables)
    return results_page(tables) if form == "html" else render("results.md", tables=tables)


def written(rows: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: as_cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


# --------------------------------------------------------------------------- tables


def tables_csv(tables: Sequence[Table]) -> str:
    """One line per entry of every table, for scripts and spreadsheets.

    ``mean``, ``std``, ``paper_mean``, ``paper_std`` and ``difference`` are percent, or ratios
    and distances as they are; ``seeds`` is how many runs have such a value.
    ``parameters_paper`` and ``parameters_stored`` are what our memory keeps, counted both ways;
    ``paper_millions`` is what the paper prints.
    """
    rows = []
    for table in tables:
        for line, column, entry in table.entries if table.has_numbers else ():
            if not entry.runs and not entry.paper:
                continue
            row, paper, experiment = line.row, entry.paper, table.experiment
            quoted = row.quoted or column.quoted
            theirs = row.backbone or experiment.paper_backbone
            fields = {
                "table": table.name,
                "row": row.name,
                "labels": "; ".join(f"{name}={text}" for name, text in row.labels.items()),
                "quoted": "yes" if quoted else "no",
                "data": column.data,
                "backbone": theirs if quoted else column.backbone,
                "protocol": column.protocol,
                "metric": column.metric,
                "mean": entry.mean,
                "std": entry.std,
                "seeds": len(entry.values),
                "missing": len(entry.runs) - len(entry.records) - entry.failed,
                "failed": entry.failed,
                "paper_mean": paper and paper.mean,
                "paper_std": paper and paper.std,
                "difference": entry.difference,
                "parameters_paper": entry.parameters("paper"),
                "parameters_stored": entry.parameters("stored"),
                "paper_millions": row.parameters,
            }
            rows.append({n: f"{v:.10g}" if isinstance(v, float) else v for n, v in fields.items()})
    return written(rows, list(rows[0]) if rows else ["table", "row", "labels", "mean"])


def results_page(tables: Sequence[Table]) -> str:
    """One page that loads nothing from elsewhere."""
    runs = unique_runs(tables)
    return render(
        "results.html",
        tables=tables,
        pictures={table.name: pictures(table) for table in tables},
        frontiers=[
            (plots.frontier(points, title), points)
            for title, points in frontier.by_data_set(tables)
        ],
        runs=runs,
        finished=sum(run.record is not None for run in runs.values()),
        failures=[run for run in runs.values() if run.record is None and run.failure],
    )


def pictures(table: Table) -> list[tuple[str, str]]:
    """SVG and caption of each figure of a table that has finished runs."""
    kind, found = table.experiment.kind, []
    if kind == "courses":  # accuracy by task: one figure per column, one line per row
        for number, column in enumerate(table.columns):
            series = {
                line.row.name: [accuracy_by_task(record["accuracy"]) for record in records]
                for line in table.lines
                if (records := line.entries[number].records)
            }
            if series:
                counts = ", ".join(f"{name} {len(seeds)}" for name, seeds in series.items())
                caption = f"{column.backbone}. Seeds: {counts}."
                found.append((plots.accuracy_by_task(series, column.heading), caption))
    known: dict[str, Callable[[Any], str]]
    known = {"placement": plots.placement, "tsne": plots.layouts}
    for line, column, entry in table.entries if kind in known else ():
        run = next((run for run in entry.runs if run.record is not None), None)
        tasks = run.record["observed"].get("tasks") if run and run.record else None
        if run and tasks:
            caption = f"{line.row.name} on {column.title}, {column.backbone}; seed {run.cell.seed}."
            found.append((known[kind](tasks), caption))
    return found


# --------------------------------------------------------------------------- a race


def race_page(race: Race, form: str) -> str:
    """Standings, duels and every column; as HTML with plots."""
    table, figures = race.table, {}
    if form == "html":
        apart, podium = race.critical_difference if len(race.ranks) > 2 else 0.0, race.podium()
        figures = {
            "ranks": len(race.ranks) > 2 and plots.ranks(race.ranks, apart, podium),
            "pictures": {data: race_pictures(race, data) for data in race.data},
        }
    best = {
        protocol: max((one.means[protocol] or 0.0 for one in race.standings), default=0.0)
        for protocol in race.protocols
    }
    done = [run.record["versions"] for run in table.runs if run.record is not None]
    versions = [", ".join(f"{name} {version}" for name, version in one.items()) for one in done]
    return render(
        f"race.{form}",
        race=race,
        best=best,
        versions=list(dict.fromkeys(versions)),
        missing=[run.cell.name for run in table.runs if run.record is None],
        example={
            "row": table.lines[-1].row.name,
            "data": table.columns[0].data,
            "protocol": table.columns[0].protocol,
        },
        **figures,
    )


def race_pictures(race: Race, data: str) -> list[str]:
    """The plots of a data set."""
    found, title = [], race.data[data]
    curves = {name: race.curve(data, name) for name in race.names}
    if all(any(curve[n] is not None for curve in curves.values()) for n in (0, -1)):
        found.append(plots.shots(curves, race.shots, race.podium(), title))
    points = race.frontier(data)
    if len(points) > 1:
        found.append(plots.frontier(points, f"{title}, all samples", BYTES))
    return found


def race_csv(race: Race) -> str:
    """One line per run; shares from 0 to 1."""
    rows = []
    for line, column, entry in race.table.entries:
        for run in entry.runs:
            if run.record is None:
                continue
            row = {
                "method": line.row.name,
                "data": column.data,
                "protocol": column.protocol,
                "seed": run.cell.seed,
            }
            row |= {score: f"{run.record['metrics'][score]:.6g}" for score in SCORES}
            memory, tasks = run.record["memory"], run.record["seconds"]
            row |= {"parameters": memory["stored"], "bytes": memory["bytes"]}
            for name, part in (("learn_seconds", "learn"), ("answer_seconds", "predict")):
                row[name] = f"{sum(task[part] for task in tasks):.3f}"
            rows.append(row)
    return written(rows, list(rows[0]) if rows else ["method", "data", "protocol", "seed"])


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
    best = [max(one.means[p] or 0.0 for one in standings.values()) for p in shown]
    for name in names:
        one = standings[name]
        cells = [
            f"**{decimal(mean)}**" if mean is not None and mean == top else decimal(mean)
            for mean, top in zip((one.means[p] for p in shown), best, strict=True)
        ]
        lines.append([name, *cells, decimal(one.rank), sizes(one.bytes)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
