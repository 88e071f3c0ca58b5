"""HTML pages from the templates beside this module: one file each, nothing from outside."""

from __future__ import annotations

import base64
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **content: Any) -> str:
    """The page that a template makes of its content.

    Everything inserted is escaped, and a name that the template asks for but was
    not given is an error. A new page extends ``base.html``, which has the style.

    Parameters
    ----------
    template
        File name of a template in this package.
    content
        What the template's names stand for.
    """
    return _environment().get_template(template).render(content)


def data_uri(content: bytes, kind: str = "image/png") -> str:
    """The content as an address that a page can hold in itself.

    >>> data_uri(b"ink")
    'data:image/png;base64,aW5r'
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def percent(share: float | None) -> str:
    """A share of one, to one decimal; nothing for what was not measured.

    >>> percent(0.8571), percent(-0.0001), percent(float("nan"))
    ('85.7%', '0.0%', '')
    """
    if share is None or share != share:
        return ""
    return f"{round(100 * share, 1) + 0.0:.1f}%"


def count(number: int) -> str:
    """A whole number.

    >>> count(80219)
    '80,219'
    """
    return f"{number:,}"


def size(number: int) -> str:
    """That many bytes, as people say it.

    >>> size(980), size(81_920), size(1_250_000), size(3_000_000_000)
    ('980 bytes', '82 kB', '1.2 MB', '3.0 GB')
    """
    for unit, digits, letter in ((1e9, 1, "GB"), (1e6, 1, "MB"), (1e3, 0, "kB")):
        if number >= unit:
            return f"{number / unit:.{digits}f} {letter}"
    return f"{number} bytes"


def seconds(duration: float) -> str:
    """A duration, to one decimal.

    >>> seconds(8.04)
    '8.0'
    """
    return f"{duration:.1f}"


def scientific(number: float) -> str:
    """A number of any size, to two digits.

    >>> scientific(0.000123), scientific(0.0)
    ('1.2e-04', '0')
    """
    return f"{number:.1e}" if number else "0"


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (percent, count, size, seconds, scientific):
        environment.filters[function.__name__] = function
    return environment


def _template(name: str) -> str | None:
    """The text of a template; ``None`` makes Jinja say which one is missing."""
    template = files(__package__).joinpath(name)
    return template.read_text("utf-8") if template.is_file() else None
