"""What is sent and answered: models that check requests, and that make the OpenAPI document."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,  # as pydantic needs it before Python 3.12
)

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from frugalvae import __version__
from frugalvae.labels import LONGEST
from frugalvae.model.answers import THRESHOLD

if TYPE_CHECKING:
    from starlette.requests import Request

MOST = 100  # classes that may be named in one answer


def without_default(schema: dict[str, Any]) -> None:
    """Say nothing of a default."""
    del schema["default"]


def absent(**about: Any) -> Any:
    """The default of a field that need not be there, and is not null."""
    return Field(default=None, json_schema_extra=without_default, **about)


def as_share(value: object) -> object:
    """A share as it may be typed: ``2%`` is 0.02."""
    if isinstance(value, str) and value.endswith("%"):
        return float(value[:-1]) / 100
    return value


def as_name(value: object) -> object:
    """A name that is a number, as classes may be called."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def not_blank(value: str) -> str:
    """The name, unless it cannot be seen."""
    if not value.strip():
        raise ValueError("expected a name")
    return value


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(as_share)]
Count = Annotated[int, Field(ge=0)]
Label = Annotated[str | int, Field(description="the name of a class")]
Interval = Annotated[
    list[Share],
    Field(description="bounds of its expected accuracy, if enough images were tested"),
]
Name = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST, description="of the class, new or known"),
    AfterValidator(not_blank),
    BeforeValidator(as_name),
]
Ids = Annotated[
    list[str],
    Field(description="images of /predict that are still remembered"),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
]


# --------------------------------------------------------------------------- what is sent


class PredictOptions(BaseModel):
    """What may be asked of ``/predict``."""

    top: int = Field(default=1, ge=1, le=MOST, description="how many classes to name")
    min_probability: Share = Field(
        default=0.0, description="name only classes at least this probable"
    )
    unknown: bool = Field(default=False, description="report whether it is any of the classes")
    threshold: Share = absent(
        description="how familiar it has to look to be known; implies unknown"
    )
    error: Share = absent(
        description="answer only where at most this share of answers is wrong: adds sure"
    )
    sets: Share = absent(
        description="name as many classes as hold the right one so often: adds set"
    )
    kept: Literal["tray", "quiet", "no"] = Field(
        default="tray",
        description="tray: remembered with a small image, and listed in /recent; quiet: "
        "remembered by its id alone, to be taught; no: not at all",
    )

    @property
    def is_compared(self) -> bool:
        """Whether it is asked if an image belongs to any class."""
        return self.unknown or self.threshold is not None

    @property
    def least_familiarity(self) -> float:
        """Of an image that is known."""
        return THRESHOLD if self.threshold is None else self.threshold


class ExplainOptions(BaseModel):
    """What may be asked of ``/explain``."""

    picture: bool = Field(default=False, description="answer with an image of it, as PNG")


class ClassesOptions(BaseModel):
    """What may be asked of ``/classes``."""

    brief: bool = Field(default=False, description="only names and numbers of samples")


class IdsRequest(BaseModel):
    """Images that are remembered."""

    ids: Ids = absent()


class ExplainRequest(BaseModel):
    """A class to compare with."""

    against: Name = absent()


class Change(BaseModel):
    """What each change may have."""

    model_config = ConfigDict(populate_by_name=True)

    revision: str = absent(description="refuse the change if the file is in another state by now")


class LearnRequest(Change):
    """Images of a class."""

    name: Name
    ids: Ids = []
    case_matters: bool = False


class RenameRequest(Change):
    """A class and its new name."""

    old: Name = Field(alias="from")
    to: Name
    case_matters: bool = False


class MergeRequest(Change):
    """Two classes, of which ``other`` becomes part of the first."""

    label: Name
    other: Name


class ForgetRequest(Change):
    """A class."""

    label: Name


# --------------------------------------------------------------------------- what is answered

Error = TypedDict("Error", {"error": str})
Chance = TypedDict("Chance", {"label": Label, "probability": Share})
Unreadable = TypedDict("Unreadable", {"input": str, "reason": str})
TaughtAs = Annotated[str | None, Field(description="the class that was taught this very image")]
Answer = TypedDict(
    "Answer",
    {
        "input": str,
        "label": Label | None,
        "known": bool | None,
        "familiarity": Share | None,
        "top": list[Chance],
        "id": NotRequired[str],
        "taught": NotRequired[TaughtAs],
        "sure": NotRequired[bool],
        "set": NotRequired[list[Label]],
    },
)
Predictions = TypedDict(
    "Predictions",
    {
        "file": str,
        "predictions": list[Answer],
        "unreadable": list[Unreadable],
        "skipped": list[Unreadable],
        "seconds": float,
        "revision": str | None,
    },
)
Recent = TypedDict("Recent", {"seconds": float, "questions": list[Answer]})
Removed = TypedDict("Removed", {"removed": Count})
Suggestion = TypedDict(
    "Suggestion", {"id": str, "label": Label, "doubt": Share, "known": bool, "why": str}
)
Suggestions = TypedDict("Suggestions", {"suggestions": list[Suggestion], "groups": list[list[str]]})
Evidence = TypedDict(
    "Evidence",
    {"label": Label, "probability": Share, "part": str, "taught": list[dict[str, Any]]},
)
Explanation = TypedDict(
    "Explanation",
    {
        "classes": list[Evidence],
        "influence": list[list[float]],
        "seconds": float,
        "revision": str,
    },
)

Before = TypedDict("Before", {"bytes": Count, "classes": Count})
After = TypedDict("After", {"bytes": Count, "classes": Count, "samples": Count})
TakenFor = TypedDict("TakenFor", {"label": Label, "share": Share})
Gone = Annotated[list[str], Field(description="classes that had no others than those moved")]
Lesson = TypedDict(
    "Lesson",
    {
        "label": Label,
        "new": bool,
        "learned": Count,
        "already": Count,
        "copies": Count,
        "moved": dict[str, Count],
        "gone": Gone,
        "unreadable": list[Unreadable],
        "near": str | None,
        "before": Before,
        "after": After,
        "confused": list[TakenFor],
        "interval": Interval | None,
        "warnings": list[str],
        "seconds": float,
        "revision": str,
    },
)
FileState = TypedDict("FileState", {"revision": str, "bytes": Count, "classes": Count})


class Changed(FileState):
    """What a change came to, and what the file is now."""

    text: str
    label: Label


class Forgotten(Changed):
    """The same, with a receipt of what was removed."""

    receipt: dict[str, Any]


class Undone(FileState):
    """What was taken back, and what the file is now."""

    text: str
    event: dict[str, Any] | None
    gone: list[str]
    back: list[str]


LastChange = TypedDict("LastChange", {"text": str, "when": str | None})
Expected = TypedDict(
    "Expected",
    {
        "accuracy": Share,
        "low": Share,
        "high": Share,
        "held_out": Count,
        "enough": bool,
        "classes": dict[str, Share],
        "intervals": dict[str, Interval],
    },
)
Keep = TypedDict("Keep", {"seconds": float, "most": Count, "bytes": Count, "folder": bool})
Status = TypedDict(
    "Status",
    {
        "file": str,
        "revision": str | None,
        "bytes": Count,
        "classes": Count,
        "samples": Count,
        "teach": bool,
        "undo": LastChange | None,
        "broken": str | None,
        "warnings": list[str],
        "expected": NotRequired[Expected | None],
        "keep": Keep,
        "limits": dict[str, Any],
    },
)
ClassRow = TypedDict(
    "ClassRow",
    {
        "label": Label,
        "samples": Count,
        "task": Count,
        "accuracy": NotRequired[Share | None],
        "interval": NotRequired[Interval | None],
    },
)
Confusion = TypedDict("Confusion", {"label": Label, "taken_for": Label, "share": Share})
Classes = TypedDict(
    "Classes",
    {
        "revision": str | None,
        "accuracy": Share | None,
        "interval": Interval | None,
        "classes": list[ClassRow],
        "confused": list[Confusion],
    },
)
Event = TypedDict("Event", {"text": str})
History = TypedDict("History", {"events": list[Event], "undo": bool})
Health = TypedDict(
    "Health",
    {"status": Literal["ok", "degraded"], "problem": str | None, "revision": str | None},
)


# --------------------------------------------------------------------------- the OpenAPI document


@dataclass(frozen=True)
class Operation:
    """What is answered at a path.

    Attributes
    ----------
    work
        Answers; its docstring says what it does.
    answer
        The model of the answer, or its content type; None for what is not documented.
    body, images
        The model of what is sent; and whether images may be sent.
    options
        The model of what the address may have.
    or_png
        Whether the answer may be a picture instead.
    """

    method: str
    path: str
    work: Callable[[Any, Request], Awaitable[Any]]
    answer: Any = None
    body: type[BaseModel] | None = None
    images: bool = False
    options: type[BaseModel] | None = None
    or_png: bool = False

    @property
    def about(self) -> dict[str, Any]:
        """What it does, as the docstring of what answers says it."""
        summary, _, more = (inspect.getdoc(self.work) or "").partition("\n\n")
        return {"summary": summary, "description": " ".join(more.split())}


BINARY = {"type": "string", "format": "binary"}
RAW = {f"image/{kind}": {"schema": BINARY} for kind in ("jpeg", "png", "webp")}
REFERENCE = "#/components/schemas/{model}"
REFUSED = {
    "description": "Refused: `error` states what was given, what was expected and what to do.",
    "content": {"application/json": {"schema": {"$ref": REFERENCE.format(model="Error")}}},
}


def description(file: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """The whole OpenAPI document; the file is named by its name alone."""
    paths: dict[str, Any] = {}
    answers: dict[str, Any] = {"Error": TypeAdapter(Error)}
    for one in operations:
        if one.answer is None:
            continue
        if isinstance(one.answer, str):
            content: dict[str, Any] = {one.answer: {"schema": {"type": "string"}}}
        else:
            answers[one.answer.__name__] = TypeAdapter(one.answer)
            content = {
                "application/json": {
                    "schema": {"$ref": REFERENCE.format(model=one.answer.__name__)}
                }
            }
        if one.or_png:
            content["image/png"] = {"schema": BINARY}
        answered = {"description": "what was asked for", "content": content}
        operation = {**one.about, "parameters": parameters(one)}
        if one.body is not None:
            operation["requestBody"] = {"required": True, "content": bodies(one.body, one.images)}
        operation["responses"] = {"200": answered, "4XX": REFUSED, "503": REFUSED}
        paths[one.path] = {one.method.lower(): operation}
    schemas = TypeAdapter.json_schemas(
        [(name, "serialization", adapter) for name, adapter in answers.items()],
        ref_template=REFERENCE,
    )[1]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"FrugalVAE: {file}",
            "version": __version__,
            "description": "Ask, teach and correct a classifier of photographs.",
        },
        "paths": paths,
        "components": {
            "schemas": without_titles(schemas["$defs"]),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def parameters(operation: Operation) -> list[dict[str, Any]]:
    """What is in the path and after it."""
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    fields = schema_of(operation.options)["properties"] if operation.options else {}
    for name, schema in fields.items():
        about = {"description": schema.pop("description", "")}
        found.append({"name": name, "in": "query", "schema": schema, **about})
    return found


def bodies(model: type[BaseModel], images: bool) -> dict[str, Any]:
    """What may be sent: JSON, and images in a form or as they are."""
    schema = schema_of(model)
    fields, required = schema["properties"], schema.get("required", [])
    if not images:
        return {"application/json": {"schema": schema}}
    form = {"images": {"type": "array", "items": BINARY}} | fields
    found = {"multipart/form-data": {"schema": table(form, ["images", *required])}}
    if "ids" in fields:  # without images there must be some
        found["application/json"] = {"schema": table(fields, [*required, "ids"])}
    return found if required else found | RAW


def table(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties, "required": required}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model, which refers to no other."""
    found: dict[str, Any] = without_titles(model.model_json_schema())
    return found


def without_titles(schema: Any) -> Any:
    """A schema without the titles that repeat the names of fields."""
    if isinstance(schema, list):
        return [without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without_titles(value) for key, value in schema.items() if key != "title"}


# --------------------------------------------------------------------------- as a page

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="page/docs.css">
</head>
<body>
<h1>{title}</h1>
<p>Version {version}. The same as <a href="openapi.json">OpenAPI</a>. If there is a token, send it
as <code>Authorization: Bearer TOKEN</code>.</p>
<pre>curl -F images=@photo.jpg '{address}/predict?top=3&amp;unknown=true'
curl -F name=wren -F images=@1.jpg -F images=@2.jpg {address}/learn</pre>
{operations}
<h2>What is answered</h2>
{schemas}
</body>
</html>
"""


def page(document: dict[str, Any], address: str) -> str:
    """The document as a page that needs nothing else; ``address`` is the server's own.

    >>> "&lt;b&gt;" in page(description("<b>.frugal", []), "http://127.0.0.1:8000")
    True
    """
    operations = [
        f"<h2><code>{method.upper()} {escape(path)}</code></h2>{as_html(one)}"
        for path, found in document["paths"].items()
        for method, one in found.items()
    ]
    schemas = [
        f"<h3 id='{name}'>{name}</h3><pre>{escape(json.dumps(schema, indent=1))}</pre>"
        for name, schema in document["components"]["schemas"].items()
    ]
    return PAGE.format(
        title=escape(document["info"]["title"]),
        version=document["info"]["version"],
        address=escape(address),
        operations="".join(operations),
        schemas="".join(schemas),
    )


def as_html(operation: dict[str, Any]) -> str:
    """What can be asked, sent, and is answered."""
    parts = [f"<p>{escape(operation['summary'])} {escape(operation['description'])}</p><table>"]
    for one in operation["parameters"]:
        about = escape(one.get("description", ""))
        parts.append(f"<tr><td><code>{one['name']}</code></td><td>{about}</td></tr>")
    parts.append("</table>")
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        fields = ", ".join(body["schema"].get("properties", {})) or "the bytes of an image"
        parts.append(f"<p>Send <code>{kind}</code>: {fields}</p>")
    for kind, body in operation["responses"]["200"]["content"].items():
        name = body["schema"].get("$ref", "").rpartition("/")[2]
        parts.append(f"<p>Answer: {f'<a href=#{name}>{name}</a>' if name else kind}</p>")
    return "".join(parts)
