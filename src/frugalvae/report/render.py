"""Fill the templates of this package: HTML, Markdown and LaTeX, each with its own escaping."""

from __future__ import annotations

import base64
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from frugalvae.report.wording import FILTERS

if TYPE_CHECKING:
    from jinja2 import Environment

#: What LaTeX would not print as it is, and what its fonts lack.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "✓": r"$\checkmark$",
        "✗": r"$\times$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "é": r"\'e",
        "±": r"$\pm$",
        "\N{MINUS SIGN}": r"$-$",
        "\N{EN DASH}": "--",
        "\N{EM DASH}": "---",
        "\N{ZERO WIDTH SPACE}": "{}",
    }
)


def render(template: str, **content: Any) -> str:
    """Fill a template.

    Everything inserted is escaped for the format that the template's ending names. A name that
    the template uses but was not given is an error. New pages extend ``base.html``, which has
    the style.

    Parameters
    ----------
    template
        File name in the folder ``templates``.
    content
        Values of the template's names.
    """
    return _environment(template.rpartition(".")[2]).get_template(template).render(content)


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(escape_markdown("a|b *c* <d>"))
    a\|b \*c\* &lt;d>
    """
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", text).replace("<", "&lt;")


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escape_latex("50% of R_1 ✓ --data"))
    50\% of R\_1 $\checkmark$ -{}-data
    """
    return re.sub("-(?=-)", "-\N{ZERO WIDTH SPACE}", text).translate(_LATEX)


def data_uri(content: bytes, kind: str = "image/png") -> str:
    """An address that holds the content itself.

    >>> data_uri(b"ink")
    'data:image/png;base64,aW5r'
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _environment(ending: str) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    options: dict[str, Any] = {"autoescape": True}
    if ending != "html":  # escape all that is inserted, unless the template says ``safe``
        escape = {"md": escape_markdown, "tex": escape_latex}[ending]
        options["finalize"] = lambda text: text if isinstance(text, Markup) else escape(str(text))
        options["autoescape"] = False
    if ending == "tex":  # braces are LaTeX's own
        options |= {"variable_start_string": "<<", "variable_end_string": ">>"}
        options |= {"block_start_string": "<%", "block_end_string": "%>"}
    environment = Environment(
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters.update(FILTERS)
    return environment


def _template(name: str) -> str | None:
    """The text of a template; ``None`` makes Jinja name the missing one."""
    template = files(__package__).joinpath("templates", name)
    return template.read_text("utf-8") if template.is_file() else None
