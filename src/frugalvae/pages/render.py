"""Fill the templates of this package, and make thumbnails that a page holds itself.

Templates use the functions of :data:`FILTERS` as filters: ``{{ number | count }}``.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageOps

from frugalvae.console import track
from frugalvae.formatting import count, percent, plural, size
from frugalvae.images.decode import decode

if TYPE_CHECKING:
    from jinja2 import Environment

SIDE = 128  # pixels; more than are shown, for screens with high resolution
QUALITY = 72


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


def thumbnails(rows: Iterable[int], read: Callable[[int], bytes] | None) -> dict[int, str]:
    """A thumbnail for each row; images that can no longer be read are left out.

    Parameters
    ----------
    rows
        Which images, in any order; repeated rows count once.
    read
        Returns the content of an image file; None if there are no images.
    """
    if read is None:
        return {}
    found = {}
    for row in track(sorted(set(rows)), "making thumbnails"):
        try:
            found[row] = thumbnail(read(row))
        except Exception:  # Pillow and zipfile fail in many ways, and the file was read before
            continue
    return found


def thumbnail(content: bytes, side: int = SIDE) -> str:
    """The middle of an image, upright: roughly what encoders see.

    >>> buffer = io.BytesIO()
    >>> Image.new("RGB", (300, 200), "red").save(buffer, "png")
    >>> thumbnail(buffer.getvalue())[:30]
    'data:image/jpeg;base64,/9j/4AA'
    """
    square = ImageOps.fit(decode(content, side), (side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    square.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return data_uri(buffer.getvalue(), "image/jpeg")
