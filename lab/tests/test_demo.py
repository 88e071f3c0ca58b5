from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from jinja2 import TemplateNotFound, UndefinedError
from PIL import Image

from frugalvae.errors import InputError
from frugalvae_lab import demo as demo_runs
from frugalvae_lab.cli import parser
from frugalvae_lab.demo import (
    MEMORIES,
    SAMPLES,
    VAE,
    DemoRun,
    demo_page,
    demo_picture,
    real_images,
    teach,
)
from frugalvae_lab.images.dataset import load_digits
from frugalvae_lab.report import plots
from frugalvae_lab.report.render import render

TINY = {**VAE, "hidden": 24, "latent": 16, "epochs": 2, "prior": "normal"}
SEED = 3
VOID = {"meta", "img", "br"}


@dataclass
class Cell:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    images: list[dict[str, str | None]] = field(default_factory=list)


class Page(HTMLParser):
    """Tables cell by cell, every attribute, and whether tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[tuple[dict[str, str | None], list[list[Cell]]]] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append((dict(attrs), []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append(Cell(tag, dict(attrs)))
        elif tag == "img":
            self.tables[-1][1][-1][-1].images.append(dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][1][-1][-1].text += data.strip()

    def rows(self, kind: str, memory: str | None = None) -> list[list[Cell]]:
        """The body of the one table of that class, or of that class and memory."""
        found = [
            rows
            for attributes, rows in self.tables
            if attributes.get("class") == kind and memory in (None, attributes.get("data-memory"))
        ]
        return [[c for c in row if c.tag == "td"] for row in found[0] if row[-1].tag == "td"]


@dataclass(frozen=True)
class Shown:
    """What one run of the demo left behind."""

    runs: list[DemoRun]
    html: str
    picture: bytes
    printed: str


def demo(page: Path, *words: str) -> None:
    """Run the command."""
    options = parser().parse_args(["demo", "-o", str(page), *words])
    options.run(options)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder, runs = tmp_path_factory.mktemp("demo"), []
    printed = io.StringIO()

    def remembering(*arguments: Any) -> DemoRun:
        runs.append(teach(*arguments))
        return runs[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_runs, "VAE", TINY)
        patch.setattr(demo_runs, "teach", remembering)
        patch.setattr("sys.stdout", printed)
        demo(folder / "page.html", f"--seed={SEED}", f"--picture={folder / 'picture.png'}")
    return Shown(
        runs,
        (folder / "page.html").read_text("utf-8"),
        (folder / "picture.png").read_bytes(),
        printed.getvalue(),
    )


@pytest.fixture
def page(shown: Shown) -> Page:
    return Page(shown.html)


def content(**changes: Any) -> dict[str, Any]:
    """What the page says besides the runs."""
    return {"samples": 6, "train": 10, "test": 5, "seed": 0, "settings": VAE} | changes


def test_the_page_is_well_formed_and_refers_to_nothing_outside(page: Page, shown: Shown) -> None:
    assert page.open == []
    assert "script" not in page.tags
    assert "link" not in page.tags
    for name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            assert value.startswith(("data:image/png;base64,", "#")), value
        elif not name.startswith("xmlns"):  # the names of SVG's namespaces look like addresses
            assert "//" not in value
    assert "@import" not in shown.html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", shown.html))
    assert len(shown.html.encode()) < 1_500_000


def test_no_identifier_occurs_twice(page: Page) -> None:
    identifiers = [value for name, value in page.attributes if name == "id"]
    assert len(identifiers) == len(set(identifiers))


def test_every_memory_has_a_row_with_the_numbers_of_its_record(page: Page, shown: Shown) -> None:
    assert [run.name for run in shown.runs] == [row.name for row in MEMORIES]
    rows = page.rows("figures")
    names = [row[0].text for kind, row in _body_with_names(page) if kind == "figures"]
    assert names[: len(MEMORIES)] == [row.name for row in MEMORIES]
    for row, run in zip(rows, shown.runs, strict=True):
        record = run.record
        assert [cell.text for cell in row] == [
            f"{100 * np.nanmean(record.accuracy[-1]):.1f}%",
            f"{100 * record.metrics['forgetting']:.1f}%".replace("-0.0%", "0.0%"),
            f"{record.memory['stored']:,}",
            f"{record.memory['paper']:,}",
            f"{sum(task['learn'] + task['predict'] for task in record.seconds):.1f}",
        ]


def _body_with_names(page: Page) -> list[tuple[str | None, list[Cell]]]:
    return [(a.get("class"), row) for a, rows in page.tables for row in rows if row[-1].tag == "td"]


@pytest.mark.parametrize("position", range(len(MEMORIES)))
def test_cells_hold_what_was_drawn_and_stay_empty_until_learned(
    page: Page, shown: Shown, position: int
) -> None:
    run = shown.runs[position]
    tasks = run.record.tasks
    labels = [label for part in tasks for label in part]
    grid = page.rows("grid", run.name)
    assert [len(row) for row in grid] == [10] * 5
    for number, row in enumerate(grid):
        for label, cell in zip(labels, row, strict=True):
            if labels.index(label) >= 2 * (number + 1):
                assert (cell.attributes, cell.images) == ({"class": "later"}, [])
                continue
            assert (cell.attributes.get("class") == "new") == (label in tasks[number])
            (image,) = cell.images
            assert image["alt"] == f"{label} as drawn after task {number + 1}"
            _check_pixels(str(image["src"]), run.samples[number][label])


def _check_pixels(source: str, drawn: np.ndarray) -> None:
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))
    assert pixels.shape == (2 * 8 + 1, 3 * 8 + 2)
    assert drawn.shape == (SAMPLES, 8, 8)
    for number, picture in enumerate(drawn):
        top, left = 9 * (number // 3), 9 * (number % 3)
        shade = 1 - pixels[top : top + 8, left : left + 8] / 255
        np.testing.assert_allclose(shade, picture.clip(0, 1), atol=0.5 / 255 + 1e-6)


def test_the_matrix_of_each_memory_is_that_of_its_record(page: Page, shown: Shown) -> None:
    for run in shown.runs:
        matrix = [[cell.text for cell in row] for row in page.rows("heat", run.name)]
        assert matrix == [
            ["" if np.isnan(share) else f"{share:.1%}" for share in row]
            for row in run.record.accuracy
        ]


def test_free_directions_of_every_layer_are_shown(page: Page, shown: Shown) -> None:
    states = shown.runs[0].record.layers
    assert len(states) == 3 * 5
    layers = [row for kind, row in _body_with_names(page) if kind == "figures"][len(MEMORIES) :]
    for number, row in enumerate(layers, start=1):
        mine = [state for state in states if state["layer"] == number]
        assert [cell.text for cell in row[1:6]] == [f"{s['rank']} of {s['size']}" for s in mine]


def test_the_terminal_shows_the_same_numbers_and_where_the_page_is(shown: Shown) -> None:
    for run in shown.runs:
        (line,) = [line for line in shown.printed.splitlines() if f" {run.name} " in line]
        assert f" {run.final:.1%} " in line
        assert f" {run.record.memory['stored']:,} " in line
    assert "page.html" in shown.printed.replace("\n", "")
    assert "\\n" not in shown.printed  # no line break is shown as an escape


def test_hostile_names_stay_text(shown: Shown) -> None:
    name, bad = 'a<b>&"$x^$', "<script>alert('x')</script>"
    runs = [*shown.runs, replace(shown.runs[0], name=name, description=bad)]
    html = demo_page(runs, **content(settings={bad: bad}))
    page = Page(html)
    assert "script" not in page.tags
    assert page.text.count(bad) == 3
    assert len(page.rows("grid", name)) == 5
    assert html.count("a&lt;b&gt;&amp;") >= 3  # heading, table and figure


@pytest.mark.parametrize(("ours", "words"), [(0.9, "they are lost"), (0.2, "did not help")])
def test_the_headline_follows_the_numbers(shown: Shown, ours: float, words: str) -> None:
    def scored(run: DemoRun, final: float) -> DemoRun:
        metrics = run.record.metrics | {"final_average_accuracy": final}
        return replace(run, record=replace(run.record, metrics=metrics))

    runs = [scored(shown.runs[0], ours), scored(shown.runs[1], 0.5), *shown.runs[2:]]
    headline = demo_page(runs, **content()).partition("</h1>")[0]
    assert words in headline


def test_the_still_picture_is_a_png_of_the_promised_width(shown: Shown) -> None:
    picture = Image.open(io.BytesIO(shown.picture))
    assert picture.format == "PNG"
    assert picture.width == 1200
    again = demo_picture(shown.runs, real_images(load_digits()))
    assert again == shown.picture


def test_quiet_prints_nothing(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    runs = iter(shown.runs)
    monkeypatch.setattr(demo_runs, "teach", lambda *_: next(runs))
    monkeypatch.setattr(demo_runs, "VAE", TINY)
    demo(tmp_path / "page.html", f"--seed={SEED}", "--quiet")
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "page.html").read_text("utf-8") == shown.html


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_runs, "teach", lambda *_: pytest.fail("taught"))
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist; make it first"):
        demo(tmp_path / "nowhere" / "page.html")
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        demo(tmp_path / "page.html", f"--picture={tmp_path}")


def test_the_seed_decides_what_is_drawn(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    monkeypatch.setattr(demo_runs, "VAE", TINY)
    again = teach(MEMORIES[0], load_digits(), SEED, lambda: None)
    for mine, first in zip(again.samples, shown.runs[0].samples, strict=True):
        assert list(mine) == list(first)
        assert all(np.array_equal(mine[label], first[label]) for label in mine)
    np.testing.assert_array_equal(again.record.accuracy, shown.runs[0].record.accuracy)


def test_digits_are_split_the_same_way_for_every_class() -> None:
    features = load_digits()
    assert (features.x_train.min(), features.x_train.max()) == (0.0, 1.0)
    train, test = np.bincount(features.y_train), np.bincount(features.y_test)
    np.testing.assert_allclose(train / (train + test), 0.7, atol=0.01)
    assert np.array_equal(load_digits().x_test, features.x_test)


def test_a_template_that_misses_something_says_so() -> None:
    with pytest.raises(UndefinedError, match="runs"):
        render("demo.html")
    with pytest.raises(TemplateNotFound, match=r"other\.html"):
        render("other.html")


def test_curves_are_valid_deterministic_svg_with_a_name_at_each_line() -> None:
    series = {"up": [0.1, 0.9], "up & <away>": [0.2, 0.91], "$x$": [0.5, 0.4]}
    text = plots.accuracy_by_task(series, bottom=0.0)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    names = [element.text.strip() for element in root.iter() if element.tag.endswith("}text")]
    assert set(series) <= set(names)
    assert {"tasks learned", "mean accuracy on tasks so far", "0%", "100%"} <= set(names)
    assert all(colour in text for colour in plots.COLOURS[:3])
    assert "currentColor" in text
    assert text == plots.accuracy_by_task(series, bottom=0.0)


def test_names_are_moved_apart_no_more_than_needed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        heights = rng.uniform(0, 1, rng.integers(1, 9))
        moved = np.array(plots.spread(heights.tolist(), gap=0.06))
        order = np.argsort(heights)
        assert (np.diff(moved[order]) >= 0.06 - 1e-6).all()
        if len(heights) < 2 or np.diff(np.sort(heights)).min() >= 0.06:
            np.testing.assert_allclose(moved, heights, atol=1e-6)


def test_grey_values_become_ink_on_white_paper() -> None:
    pixels = np.asarray(Image.open(io.BytesIO(plots.png([[0.0, 0.5, 1.0, 7.0, -1.0]]))))
    assert pixels.tolist() == [[255, 128, 0, 0, 255]]


def test_the_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with demo_runs.one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
