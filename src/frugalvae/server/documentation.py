"""The documentation of the interface: its description, and a page of it that works offline."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from frugalvae.server.openapi import description

STYLE = Path(__file__).with_name("documentation.css")


async def openapi(request: Request) -> Response:
    """``GET /openapi.json``."""
    return JSONResponse(description(request.app.state.server.served.name))


async def docs(request: Request) -> Response:
    """``GET /docs``: a page that needs nothing else."""
    address = str(request.base_url).rstrip("/")
    return HTMLResponse(page(description(request.app.state.server.served.name), address))


async def style(_: Request) -> Response:
    """``GET /docs.css``."""
    return Response(STYLE.read_text("utf-8"), media_type="text/css")


def page(told: dict[str, Any], address: str) -> str:
    """A description as a page; ``address`` is the server's own.

    >>> "&lt;b&gt;" in page(description("<b>.frugal"), "http://127.0.0.1:8000")
    True
    """
    address = escape(address)
    info = told["info"]
    sections = [
        section(method, path, operation)
        for path, found in told["paths"].items()
        for method, operation in found.items()
    ]
    schemas = [
        f"<h3 id='{escape(name)}'>{escape(name)}</h3>{shown(schema)}"
        for name, schema in told["components"]["schemas"].items()
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])}</title>
<link rel="stylesheet" href="docs.css">
</head>
<body>
<h1>{escape(info["title"])}</h1>
<p>{escape(info["description"])} Version {escape(info["version"])}.
The same as <a href="openapi.json">OpenAPI</a>. If there is a token, send it as
<code>Authorization: Bearer TOKEN</code>.</p>
<pre>curl -F images=@photo.jpg '{address}/predict?top=3&amp;unknown=true'
curl -F name=wren -F images=@1.jpg -F images=@2.jpg {address}/learn</pre>
{"".join(sections)}
<h2>What is answered</h2>
{"".join(schemas)}
</body>
</html>
"""


def section(method: str, path: str, operation: dict[str, Any]) -> str:
    """What can be asked at one path."""
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation['summary'])}</p>")
    if operation.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{escape(one['name'])}</code></td>"
            f"<td>{escape(kind(one['schema']))}</td>"
            f"<td>{escape(one.get('description', ''))}</td></tr>"
            for one in operation["parameters"]
        )
        parts.append(f"<table>{rows}</table>")
    for sent, body in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Send <code>{escape(sent)}</code>: {fields(body['schema'])}</p>")
    for status, answer in operation["responses"].items():
        ref = answer.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref")
        name = str(ref).rpartition("/")[2] if ref else str(answer["description"])
        link = f"<a href='#{escape(name)}'>{escape(name)}</a>" if ref else escape(name)
        parts.append(f"<p>{escape(status)}: {link}</p>")
    return "".join(parts)


def kind(schema: dict[str, Any]) -> str:
    """What a value may be, in a few words."""
    if "enum" in schema:
        return " | ".join(schema["enum"])
    kinds = schema.get("type", "anything")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def fields(schema: dict[str, Any]) -> str:
    """The fields of a body."""
    names = schema.get("properties", {})
    return ", ".join(f"<code>{escape(name)}</code>" for name in names) or "the bytes of a picture"


def shown(schema: dict[str, Any]) -> str:
    """A schema as JSON."""
    return f"<pre>{escape(json.dumps(schema, indent=1))}</pre>"
