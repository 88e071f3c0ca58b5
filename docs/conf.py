"""The site: pages in Markdown, a reference from docstrings. ``make docs`` builds it offline."""

from __future__ import annotations

import os
import pkgutil
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))  # this checkout, whatever is installed

import frugalvae  # noqa: E402

project = "FrugalVAE"
release = version = frugalvae.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]

html_theme = "furo"
html_title = "FrugalVAE"
html_show_copyright = html_show_sphinx = html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
add_module_names = False
toc_object_entries = False  # they would be copied into the navigation of every page
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
python_maximum_signature_line_length = 110
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False
napoleon_custom_sections = [("Attributes", "params_style")]  # one list, beside documented members
suppress_warnings = ["ref.python"]  # a type's name that two modules have

GENERATED = ROOT / "docs" / "generated"

#: Pages that are kept elsewhere in the repository, and where the site has them.
PAGES = {
    "README.md": "/index.md",
    "CONTRIBUTING.md": "/generated/contributing.md",
    "CHANGELOG.md": "/generated/changelog.md",
    "lab/README.md": "/generated/laboratory.md",
    "lab/results/report.md": "/generated/report.md",
    "lab/results/race.md": "/generated/leaderboard.md",
    **{
        f"lab/docs/{page.name}": f"/generated/lab/{page.name}"
        for page in ROOT.glob("lab/docs/*.md")
    },
}
#: What the reference names first; other modules follow.
FIRST = ("classifier", "photos", "parts", "encoders", "moments", "paper", "testing", "model")
HIDDEN = ("frugalvae.__main__", "frugalvae.cli", "frugalvae.pages")  # commands, not an API


def setup(app: Sphinx) -> None:
    """Generate pages, then rewrite links as pages are read."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("builder-inited", generate)
    app.connect("source-read", read)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature)


def generate(_: Sphinx) -> None:
    """Write the pages that come from elsewhere: the repository, notebooks, docstrings."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    (GENERATED / "lab").mkdir(parents=True)
    for path, page in PAGES.items():
        if page.startswith("/generated"):
            text = (ROOT / path).read_text("utf-8")
            (ROOT / f"docs{page}").write_text(relink(text, Path(path).parent), "utf-8")
    for example in (ROOT / "examples").glob("*.*"):
        page = from_notebook(example) if example.suffix == ".ipynb" else from_code(example)
        name = example.name.removesuffix(".ipynb")
        (GENERATED / f"{name}.md").write_text(page, "utf-8")
    rooms = [info.name for info in pkgutil.iter_modules(frugalvae.__path__, "frugalvae.")]
    rooms = [name for name in rooms if not name.startswith(HIDDEN)]
    (GENERATED / "reference.rst").write_text(contents(rooms), "utf-8")
    for name in rooms:
        (GENERATED / f"{name}.rst").write_text(reference(name), "utf-8")


def read(_: Sphinx, page: str, source: list[str]) -> None:
    """Put the README on the first page, and make links of Markdown pages work on the site."""
    if page == "index":
        readme = (ROOT / "README.md").read_text("utf-8")
        source[0] = source[0].replace("<!-- README -->", relink(readme, Path()))
    elif not page.startswith("generated/"):
        source[0] = relink(source[0], Path("docs"))
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")  # no line ends there


def skip(_app: Sphinx, _kind: str, name: str, *_: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for its metadata routing."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def signature(*event: Any) -> tuple[str | None, ...]:
    """A signature and what it returns: types by their names, defaults that can be read."""
    taken, returned = (
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in event[-2:]
    )
    if taken == "(*args, **kwargs)":  # of a protocol, which nobody calls
        taken = ""
    return taken and re.sub(r"<\w[^<>]*>", "...", taken), returned


def relink(text: str, folder: Path) -> str:
    """Links of a page that lies in ``folder`` of the repository, as links of the site."""
    return re.sub(r"(!?)\[([^]]*)\]\(([^)\s]+)\)", lambda match: site_link(match, folder), text)


def site_link(match: re.Match[str], folder: Path) -> str:
    """One link: to a page, to the reference of a module, or, for other files, its text alone."""
    image, text, target = match.groups()
    path, hash_, anchor = target.partition("#")
    if not path or "://" in target:
        return match[0]
    path = os.path.normpath(folder / path)
    if path in PAGES:
        return f"[{text}]({PAGES[path]}{hash_}{anchor})"
    if path.startswith("docs/"):
        return f"{image}[{text}]({path.removeprefix('docs')}{hash_}{anchor})"
    if path.startswith("src/frugalvae/"):
        return f"[{text}](#{path.removeprefix('src/').removesuffix('.py').replace('/', '.')})"
    if re.fullmatch(r"examples/\w+\.(ipynb|py|toml)", path):
        return f"[{text}](/generated/{Path(path).name.removesuffix('.ipynb')}.md)"
    return text


def contents(rooms: list[str]) -> str:
    """The first page of the reference: every module and package, with what it is for."""
    first = [name for name in (f"frugalvae.{short}" for short in FIRST) if name in rooms]
    inside = [name for name in rooms if name not in first]
    return (
        "Python API\n==========\n\n"
        "Most programs need one class, :class:`~frugalvae.classifier.FrugalClassifier`, and two "
        "functions, :func:`~frugalvae.parts.make_memory` and "
        ":func:`~frugalvae.parts.make_head`. All three can be imported from ``frugalvae``.\n\n"
        f"{listed(first)}\nInside:\n\n{listed(inside)}"
    )


def listed(names: list[str]) -> str:
    """Modules as a table with the first sentences of their docstrings."""
    lines = "\n".join(f"   {name}" for name in names)
    return f".. autosummary::\n\n{lines}\n\n.. toctree::\n   :hidden:\n\n{lines}\n"


def reference(name: str) -> str:
    """A page with a module's docstrings, or with those of all modules of a package."""
    path = [str(Path(folder) / name.split(".")[-1]) for folder in frugalvae.__path__]
    inside = [info.name for info in pkgutil.walk_packages(path, f"{name}.")]
    short = name.removeprefix("frugalvae.")
    parts = [f"{short}\n{'=' * len(short)}\n\n.. automodule:: {name}\n"]
    for module in inside:
        title = module.removeprefix("frugalvae.")
        parts.append(f"{title}\n{'-' * len(title)}\n\n.. automodule:: {module}\n")
    return "\n".join(parts)


def from_notebook(path: Path) -> str:
    """A notebook as a Markdown page: text, code, and what the code printed when it was saved."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(relink(cell.source, Path("examples")))
            continue
        parts.append(f"```ipython3\n{cell.source}\n```")
        printed = "".join(printed_by(output) for output in cell.outputs).rstrip()
        if printed:
            parts.append(f"{{.printed}}\n```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"


def from_code(path: Path) -> str:
    """A file of code as a page that others link to."""
    language = {".py": "python", ".toml": "toml"}[path.suffix]
    code = path.read_text("utf-8")
    return f"---\norphan: true\n---\n# {path.name}\n\n```{language}\n{code}```\n"


def printed_by(output: Any) -> str:
    """The text of one output of a cell."""
    if output.output_type == "stream":
        return str(output.text)
    return str(output.data.get("text/plain", "")) + "\n" if "data" in output else ""


def inline_math(translator: Any, node: nodes.math) -> None:
    """A formula within a line, as MathML: browsers show it without a script."""
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def display_math(translator: Any, node: nodes.math_block) -> None:
    """A formula that stands alone."""
    translator.body.append(
        f'<div class="formula">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>'
    )
    raise nodes.SkipNode
