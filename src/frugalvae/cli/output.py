"""What verbs print besides their results: JSON for scripts, and lines on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from frugalvae.formatting import printable_message


def complain(text: str) -> None:
    """A message on standard error."""
    print(f"frugalvae: {printable_message(text)}", file=sys.stderr)


def print_json(value: Any) -> None:
    """A value on standard output, as JSON."""
    print(json_text(value, sys.stdout.encoding, indent=1))


def json_text(value: Any, encoding: str | None = None, indent: int | None = None) -> str:
    r"""JSON in plain letters, or in escapes where the encoding lacks some of them.

    A name of a file that is not UTF-8 has lone surrogates, which no encoding has.

    >>> json_text({"input": "\u00e9t\u00e9.jpg"}, "ascii")
    '{"input": "\\u00e9t\\u00e9.jpg"}'
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    return text
