"""HTML pages from the templates beside this module: one file each, nothing from outside."""

from __future__ import annotations

import base64
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from frugalvae.formatting import count, percent, scientific, seconds, size

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
