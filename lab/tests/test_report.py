"""The report says what the files say, the same in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae.errors import InputError
from frugalvae_lab.bench.grid import places
from frugalvae_lab.bench.results import Results
from frugalvae_lab.bench.run import pack_counts
from frugalvae_lab.bench.specification import parse
from frugalvae_lab.cli import main
from frugalvae_lab.report.frontier import points
from frugalvae_lab.report.pages import as_text, write_report
from frugalvae_lab.report.tables import measured, read_tables

SEEDS = [0, 1, 2]
COMMAND = "frugalvae-lab bench run small.toml --data digits --seeds 0 1 2"
DATA: dict[str, dict[str, Any]] = {
    "digits": {
        "title": "Digits & <more>",
        "backbone": "8_8 pixels",
        "fingerprint": "f",
        "seeds": SEEDS,
        "command": COMMAND,
    },
}
TABLE: dict[str, Any] = {
    "title": "A table of 100% & more",
    "reference": "Table 2",
    "about": "What | is <measured>.",
    "paper_backbone": "CLIP ViT-L/14",
    "show_memory": True,
    "data": ["digits"],
    "tasks": 10,
    "measure": "last task",
    "rows": [
        {"name": "good", "memory": "gaussian-diagonal", "paper": {"digits": [80.0, 0.5]}},
        {"name": "lda", "labels": {"tick": "✓"}, "memory": "none", "head": "lda"},
        {"name": "failing", "memory": "mixture", "parameters": 2.5},
        {"name": "absent", "memory": "store-all", "paper": {"digits": [90.0]}},
        {
            "name": "theirs",
            "quoted": True,
            "backbone": "ViT-B/16",
            "paper": {"digits": [50.0, 1.0], "imagenet-r": [89.99, 0.08]},
        },
    ],
}
LAYERS: dict[str, Any] = {
    "title": "R",
    "metric": "first_layer_proportion",
    "tasks": 10,
    "measure": "last task",
    "rows": [{"name": "null space", "memory": "vae-fo", "head": "nearest-mean"}],
}
COURSES: dict[str, Any] = {
    "title": "Courses",
    "kind": "courses",
    "reference": "Figure 4",
    "rows": [{"name": "good", "memory": "gaussian-diagonal"}],
}
#: What each row measured with each seed that finished.
MEASURED = {"good": {0: 0.71, 1: 0.75, 2: 0.70}, "lda": {0: 0.6}, "null space": {0: 0.5, 1: 0.62}}


def record(accuracy: float, *, stored: int = 1500, every_task: bool = False) -> dict[str, Any]:
    """What a run of two tasks might have written."""
    first = [accuracy + 0.1, None] if every_task else [None, None]
    return {
        "versions": {"frugalvae": "0", "note": "</script><b>"},
        "tasks": [["a", "b"], ["c"]],
        "accuracy": [first, [accuracy, accuracy]],
        "metrics": {"final_average_accuracy": accuracy},
        "confusion": pack_counts(np.eye(3, dtype=int)),
        "layers": [
            {"layer": 1, "proportion": accuracy / 100},
            {"layer": 2, "proportion": 1.0},
            {"layer": 1, "proportion": accuracy / 50},
        ],
        "memory": {
            "components": [{"name": "all", "paper": 2_000_000, "stored": stored}],
            "paper": 2_000_000,
            "stored": stored,
        },
        "seconds": [{"learn": 1.0, "predict": 0.5}, {"learn": 1.0, "predict": 0.5}],
        "observed": {},
        "warnings": ["careful"],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Results(tmp_path / "results")
    store.prepare()
    for name, source in (("small", TABLE), ("layers", LAYERS), ("courses", COURSES)):
        store.write_table(name, {"experiment": source, "data": DATA})
        experiment = parse(name, source)
        for place, cell in places(experiment, DATA):
            if place.row.name == "failing":
                store.fail(cell, "Traceback\nValueError: <no>")
            elif place.seed in MEASURED.get(place.row.name, {}):
                accuracy = MEASURED[place.row.name][place.seed]
                stored = 900_000 if place.row.name == "lda" else 1_500_000
                done = record(accuracy, stored=stored, every_task=cell.every_task)
                store.finish(cell, done)
    return tmp_path / "results"


def lines(folder: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """The CSV, by table, row and data set."""
    text = as_text(read_tables(folder), "csv")
    return {(r["table"], r["row"], r["data"]): r for r in csv.DictReader(io.StringIO(text))}


class Cells(HTMLParser):
    """Text of all table cells, which of it is bold, and all references."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.references: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.references += [v or "" for n, v in attrs if n in ("src", "href", "xlink:href")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.rows and ({"td", "th"} & set(self.open)):
            self.rows[-1][-1] += f" {data.strip()}"
        if "b" in self.open:
            self.bold.append(data)


def test_mean_and_deviation_are_those_of_the_files(folder: Path) -> None:
    found = [
        100 * content["metrics"]["final_average_accuracy"]
        for path in (folder / "runs").glob("digits-gaussian-diagonal-*.json")
        if not (content := json.loads(path.read_text("utf-8")))["settings"]["observe"]
    ]
    assert len(found) == 3
    line = lines(folder)["small", "good", "digits"]
    assert float(line["mean"]) == pytest.approx(np.mean(found))
    assert float(line["std"]) == pytest.approx(np.std(found, ddof=1))
    assert line["seeds"] == "3"
    assert float(line["difference"]) == pytest.approx(np.mean(found) - 80.0)
    assert (line["paper_mean"], line["paper_std"]) == ("80", "0.5")
    assert (line["parameters_paper"], line["parameters_stored"]) == ("2000000", "1500000")
    assert line["backbone"] == "8_8 pixels"


def test_one_seed_has_no_deviation(folder: Path) -> None:
    line = lines(folder)["small", "lda", "digits"]
    assert (line["mean"], line["std"], line["seeds"], line["missing"]) == ("60", "", "1", "2")
    assert "60.0 [1 of 3 seeds]" in as_text(read_tables(folder), "md")
    assert "60.0 ±" not in as_text(read_tables(folder), "md")


def test_the_proportion_of_the_first_layer_is_its_mean_over_tasks(folder: Path) -> None:
    line = lines(folder)["layers", "null space", "digits"]
    assert float(line["mean"]) == pytest.approx(np.mean([0.5 * 0.015, 0.62 * 0.015]))
    assert "0.0084 ± 0.0013" in as_text(read_tables(folder), "md")
    assert measured("proportion", record(0.5)) == pytest.approx((0.005 + 1 + 0.01) / 3)


def test_missing_failed_and_quoted_entries(folder: Path) -> None:
    found = lines(folder)
    assert found["small", "failing", "digits"]["failed"] == "3"
    assert found["small", "failing", "digits"]["paper_millions"] == "2.5"
    assert found["small", "absent", "digits"]["missing"] == "3"
    assert found["small", "absent", "digits"]["difference"] == ""
    quoted = found["small", "theirs", "imagenet-r"]
    assert (quoted["quoted"], quoted["mean"], quoted["backbone"]) == ("yes", "", "ViT-B/16")
    page = Cells(as_text(read_tables(folder), "html"))
    by_name = {row[0].split()[0]: row for row in page.rows if row[0].strip()}
    assert by_name["failing"][2].split() == ["failed"]
    assert by_name["absent"][2].split() == ["\N{EN DASH}", "paper", "90.0"]
    assert by_name["theirs"][2:] == [" 50.0 ± 1.0", " 90.0 ± 0.1"]
    assert "quoted; ViT-B/16" in by_name["theirs"][0]
    html = as_text(read_tables(folder), "html")
    assert "4 of 12 runs finished (3 seeds), 5 missing, 3 failed" in html
    assert "ValueError: &lt;no&gt;" in html


def test_the_best_is_bold_where_there_is_a_choice(folder: Path) -> None:
    tables = read_tables(folder)
    assert Cells(as_text(tables, "html")).bold == ["72.0 ± 2.6"]
    assert re.findall(r"\*\*(.*?)\*\*", as_text(tables, "md")) == ["72.0 ± 2.6"]


def test_all_formats_agree(folder: Path) -> None:
    tables = read_tables(folder)
    texts = {form: as_text(tables, form) for form in ("html", "md", "csv")}
    for line in csv.DictReader(io.StringIO(texts["csv"])):
        if line["mean"] and line["metric"] == "final_average_accuracy":
            shown = f"{float(line['mean']):.1f}"
            shown += f" ± {float(line['std']):.1f}" if line["std"] else ""
            assert shown in texts["html"]
            assert shown in texts["md"]
    difference = "\N{MINUS SIGN}8.0"
    assert f"paper 80.0 ± 0.5; {difference}" in texts["html"]
    assert f"72.0 ± 2.6** (80.0 ± 0.5, {difference})<br>2.00 / 1.50" in texts["md"]
    for form in ("html", "md"):
        assert COMMAND in texts[form]
        assert texts[form].count("2.00 / 1.50") == 1


def test_markdown_tables_have_the_same_cells_in_every_line(folder: Path) -> None:
    text = as_text(read_tables(folder), "md")
    grids = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert len(grids) == 3
    for grid in grids:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in grid}) == 1
    assert r"What \| is &lt;measured>." in text


def test_the_page_needs_nothing_from_outside(folder: Path) -> None:
    html = as_text(read_tables(folder), "html")
    assert all(reference.startswith("#") for reference in Cells(html).references)
    assert not re.search(r"<script[^>]+src|<link|@import|url\((?!#)", html)
    assert "Digits &amp; &lt;more&gt;" in html
    assert html.count("<svg") == 2  # the courses and one frontier


def test_the_same_results_give_the_same_report(folder: Path) -> None:
    for form in ("html", "md", "csv"):
        assert as_text(read_tables(folder), form) == as_text(read_tables(folder), form)


def test_the_frontier_has_every_recipe_once(folder: Path) -> None:
    found = points(read_tables(folder), "digits")
    assert [(point.name, point.best) for point in found] == [("lda", True), ("good", True)]


def test_papers_order_and_protocols(tmp_path: Path) -> None:
    store = Results(tmp_path)
    store.prepare()
    source = {
        "title": "Protocols",
        "protocols": {"5": 5, "2": 2},
        "rows": [{"name": "lda", "memory": "none", "head": "lda", "paper": {"digits 2": [7.0]}}],
    }
    for name, reference in (("a", ""), ("b", "Figure 1"), ("c", "Table 10"), ("d", "Table 9")):
        store.write_table(name, {"experiment": source | {"reference": reference}, "data": DATA})
    tables = read_tables(tmp_path)
    assert [table.name for table in tables] == ["d", "c", "b", "a"]
    entries = tables[0].lines[0].entries
    assert [entry.paper and entry.paper.mean for entry in entries] == [None, 7.0]


def test_a_csv_without_entries_still_has_its_header(tmp_path: Path) -> None:
    store = Results(tmp_path)
    store.prepare()
    source = {"title": "Layouts", "kind": "tsne", "rows": [{"name": "v", "memory": "vae-fo"}]}
    store.write_table("layouts", {"experiment": source, "data": DATA})
    header, *lines = as_text(read_tables(tmp_path), "csv").splitlines()
    assert header.startswith("table,row,labels")
    assert lines == []


def test_data_sets_keep_their_own_seeds_and_commands(folder: Path) -> None:
    other = DATA["digits"] | {"fingerprint": "g", "seeds": [0], "command": "the other command"}
    Results(folder).write_table("small", {"experiment": TABLE, "data": DATA | {"other": other}})
    tables = read_tables(folder)
    assert tables[0].commands == [COMMAND, "the other command"]
    assert [len(entry.runs) for entry in tables[0].lines[0].entries] == [3, 1, 0]
    assert "(1 to 3 seeds)" in as_text(tables, "md")
    for form in ("html", "md"):
        assert "the other command" in as_text(tables, form)


def test_the_command_writes_each_format(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, start in (
        ("r.html", "<!DOCTYPE"),
        ("r.md", "# R"),
        ("r.csv", "t"),
    ):
        assert main(["report", str(folder), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text("utf-8").startswith(start)
    assert "3 tables, 6 of 15 runs, 6 missing, 3 failed" in capsys.readouterr().out
    assert main(["report", str(folder), "-o", str(tmp_path / "r.pdf")]) == 2
    assert "r.pdf has the ending '.pdf'; use one of .html" in capsys.readouterr().err


def test_errors_say_what_to_do(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_tables(tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no tables; run an experiment first"):
        read_tables(tmp_path)
    with pytest.raises(InputError, match="table is 'pdf'"):
        write_report(folder, tmp_path / "r.md", "pdf")
    with pytest.raises(InputError, match="does not exist; make it first"):
        write_report(folder, tmp_path / "no" / "r.md")
    table = folder / "tables" / "small.json"
    for content, message in (
        ("{", "cannot be read; run the experiment again"),
        ("{}", "damaged .*'experiment' is missing"),
        (json.dumps({"experiment": {"rows": []}}), r"damaged"),
        (
            json.dumps({"experiment": TABLE, "data": {"digits": DATA["digits"] | {"seeds": 3}}}),
            "damaged .*; run the experiment again",
        ),
        (
            json.dumps({"experiment": TABLE, "data": {"digits": DATA["digits"] | {"command": {}}}}),
            "damaged .*command is {}; expected text.*; run the experiment again",
        ),
    ):
        table.write_text(content, "utf-8")
        with pytest.raises(InputError, match=message):
            read_tables(folder)


def test_a_run_that_lacks_its_score_is_named(folder: Path) -> None:
    path = next((folder / "runs").glob("digits-none-lda-seed0-*.json"))
    content = json.loads(path.read_text("utf-8")) | {"metrics": {}}
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match="digits-none-lda-seed0.* has no final_average"):
        read_tables(folder)
