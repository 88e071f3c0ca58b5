"""What a text tower is told of a class."""

from __future__ import annotations

import re


def sentence(name: str) -> str:
    """A class's name as CLIP and SigLIP like to read it.

    >>> sentence("001.Black_footed_Albatross")
    'a photo of a Black footed Albatross.'
    """
    return f"a photo of a {spoken(name)}."


def spoken(name: str) -> str:
    """A class's name as people say it: folders often carry numbers and underscores.

    >>> spoken("birds/001.Black_footed_Albatross"), spoken("707-320")
    ('Black footed Albatross', '707-320')
    """
    last = name.rsplit("/", maxsplit=1)[-1]
    return re.sub(r"^\d+\.", "", last).replace("_", " ").strip() or name
