"""Fill the templates of this package.

Templates use the functions of :data:`FILTERS` as filters: ``{{ number | count }}``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from frugalvae.formatting import count, percent, plural, size

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **content: Any) -> str:
    """Fill a template.

    Everything inserted is escaped. A name that the template uses but was not given is an error.
    New pages extend ``base.html``, which has the style.

    Parameters
    ----------
    template
        File name in the folder ``templates``.
    content
        Values of the template's names.
    """
    return environment().get_template(template).render(content)


def data_uri(content: bytes, kind: str = "image/png") -> str:
    """An address that holds the content itself.

    >>> data_uri(b"ink")
    'data:image/png;base64,aW5r'
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def environment(*packages: str) -> Environment:
    """What fills templates in the folders ``templates`` of some packages, and of this one."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def text_of(name: str) -> str | None:
        """The text of a template; ``None`` makes Jinja name the missing one."""
        places = [
            files(package).joinpath("templates", name) for package in (*packages, __package__)
        ]
        return next((place.read_text("utf-8") for place in places if place.is_file()), None)

    made = Environment(
        loader=FunctionLoader(text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(FILTERS)
    return made


def sentence(text: str) -> str:
    """With a capital letter in front.

    >>> sentence("mean R")
    'Mean R'
    """
    return text[:1].upper() + text[1:]


FILTERS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (percent, count, size, plural, sentence)
}
