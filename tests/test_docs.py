"""The pages that people read: links work, code runs, and nothing is left to be filled in."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from fnmatch import fnmatch
from pathlib import Path

import pytest

from frugalvae.cli.main import parser, take_late_folder

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("lab/*.md"),
        *ROOT.glob("lab/docs/*.md"),
    ]
)
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))
WORDS_IN_FIVE_MINUTES = 1200
GUIDES = sorted(ROOT.glob("docs/*.md"))


def anchors(page: Path) -> set[str]:
    """What may stand behind ``#`` in a link to a page, as its headings become it."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code(page: Path, language: str) -> list[str]:
    """The blocks of a page that are written in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.findall(r"@[A-Z]+@|\bTODO\b|^TABLES$", text, re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    contents = "".join(code(ROOT / "docs/index.md", "{toctree}"))
    listed = re.findall(r"^(?:.*<)?([\w/*]+)>?$", contents, re.MULTILINE)
    pages = [page.stem for page in ROOT.glob("docs/*.md") if page.stem != "index"]
    pages += [f"generated/{notebook.stem}" for notebook in NOTEBOOKS]
    pages += [f"generated/lab/{page.stem}" for page in ROOT.glob("lab/docs/*.md")]
    for page in pages:
        assert any(fnmatch(page, pattern) for pattern in listed), page


def test_a_page_takes_five_minutes_and_the_readme_less() -> None:
    length = {page.name: len(page.read_text("utf-8").split()) for page in GUIDES}
    assert {name: n for name, n in length.items() if n > WORDS_IN_FIVE_MINUTES} == {}
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


@pytest.mark.parametrize("page", [*GUIDES, *ROOT.glob("lab/docs/*.md")], ids=lambda page: page.name)
def test_a_page_first_states_what_it_is_for(page: Path) -> None:
    paragraphs = page.read_text("utf-8").split("\n\n")
    assert page.name == "index.md" or paragraphs[1].startswith("This page ")


def test_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
        assert named
        assert set(named) <= set(targets), page


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_first_example_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code(ROOT / page, "python")[0], page, "exec"), names)
    assert "moments: 10 classes in 2 tasks" in capsys.readouterr().out
    assert names["clf"].score(names["X"], names["y"]) > 0.95  # type: ignore[attr-defined]


def test_the_algebra_adds_up() -> None:
    for block in code(ROOT / "docs/algebra.md", "python"):
        exec(compile(block, "algebra.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_can_be_typed(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    for command in re.findall(r"^(?:\$ )?frugalvae ([a-z].*?)(?:\s+#.*)?$", text, re.MULTILINE):
        words = shlex.split(command)
        options, rest = parser(words[0], only=words[:1]).parse_known_args(words)
        assert not rest or take_late_folder(options, rest), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_python(page: Path) -> None:
    for block in code(page, "python"):
        compile(block, page.name, "exec")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
        pytest.importorskip("ipykernel")
        notebook = nbformat.read(path, as_version=4)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setenv("FRUGALVAE_DATA", str(ROOT / "no-data"))  # shapes are drawn everywhere
        place = {"metadata": {"path": str(path.parent)}}
        nbclient.NotebookClient(notebook, timeout=300, resources=place).execute()
    printed = "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    right, of = map(int, re.findall(r"(\d+) of (\d+) test images are right", printed)[0])
    assert right > 0.8 * of
    assert "True" in printed  # the file that was saved gives the same answers
    assert "my circle 100.0%" in printed  # and the command line those of the renamed class


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # tells of the past
        return
    lab = ROOT / "lab"
    places = [ROOT, ROOT / "src/frugalvae", ROOT / "src"]
    places += [lab, lab / "experiments", lab / "src/frugalvae_lab"]
    named = re.findall(r"`([\w/-]+\.(?:py|toml))`", page.read_text("utf-8"))
    for name in named:
        mine = name.startswith("my")  # an example of a file that a reader writes
        assert mine or any((place / name).exists() for place in places), name


def test_tests_that_pages_name_exist() -> None:
    written = "".join(
        path.read_text("utf-8")
        for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("lab/tests/*.py")]
    )
    named = {
        name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))
    }
    assert named
    assert not [name for name in sorted(named) if f"def {name}(" not in written]
