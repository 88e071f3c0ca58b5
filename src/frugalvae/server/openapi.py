"""The description of the interface, as OpenAPI has it."""

from __future__ import annotations

from typing import Any

from frugalvae import __version__
from frugalvae.server.asking import KEPT, MOST

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
LABEL: Schema = {"type": ["string", "integer"], "description": "the name of a class"}
BINARY: Schema = {"type": "string", "format": "binary"}
ANYTHING: Schema = {}


def maybe(schema: Schema) -> Schema:
    """That, or nothing.

    >>> maybe({"type": "string"})
    {'type': ['string', 'null']}
    """
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def several(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def table(required: str = "", /, **fields: Schema) -> Schema:
    """An object with these fields; all of them are there unless it is said which are."""
    names = required.split() if required else list(fields)
    found: Schema = {"type": "object", "properties": fields}
    return found | ({"required": names} if required != "-" else {})


def named(name: str) -> Schema:
    """A schema that has a name."""
    return {"$ref": f"#/components/schemas/{name}"}


CHANCE = table(label=LABEL, probability=SHARE)
UNREADABLE = table(input=TEXT, reason=TEXT)
ANSWER = table(
    "input label known familiarity top",
    input=TEXT,
    label=maybe(LABEL),
    known=maybe(FLAG),
    familiarity=maybe(SHARE),
    top=several(CHANCE),
    id=TEXT,
    taught=maybe({**TEXT, "description": "the class that was taught this very picture"}),
    sure=FLAG,
    set=several(LABEL),
)
INTERVAL = {
    **several(SHARE),
    "description": "bounds of its expected accuracy, if enough pictures were tested",
}
EXPECTED = table(
    accuracy=SHARE,
    low=SHARE,
    high=SHARE,
    held_out=WHOLE,
    enough=FLAG,
    classes={"type": "object", "additionalProperties": SHARE},
    intervals={"type": "object", "additionalProperties": INTERVAL},
)
TAKEN = table(label=LABEL, share=SHARE)
STATE: dict[str, Schema] = {"revision": TEXT, "bytes": WHOLE, "classes": WHOLE}

SCHEMAS: dict[str, Schema] = {
    "Error": table("error", error=TEXT),
    "Predictions": table(
        file=TEXT,
        predictions=several(ANSWER),
        unreadable=several(UNREADABLE),
        skipped=several(UNREADABLE),
        seconds=NUMBER,
        revision=maybe(TEXT),
    ),
    "Lesson": table(
        label=LABEL,
        new=FLAG,
        learned=WHOLE,
        already=WHOLE,
        copies=WHOLE,
        moved={"type": "object", "additionalProperties": WHOLE},
        gone={**several(TEXT), "description": "classes that had no others than those moved"},
        unreadable=several(UNREADABLE),
        near=maybe(TEXT),
        before=table(bytes=WHOLE, classes=WHOLE),
        after=table(bytes=WHOLE, classes=WHOLE, samples=WHOLE),
        confused=several(TAKEN),
        interval=maybe(INTERVAL),
        warnings=several(TEXT),
        seconds=NUMBER,
        revision=TEXT,
    ),
    "Renamed": table(text=TEXT, label=LABEL, **STATE),
    "Merged": table(text=TEXT, label=LABEL, **STATE),
    "Forgotten": table(text=TEXT, label=LABEL, receipt={"type": "object"}, **STATE),
    "Undone": table(
        text=TEXT, event=maybe({"type": "object"}), gone=several(TEXT), back=several(TEXT), **STATE
    ),
    "Status": table(
        "file revision bytes classes samples teach undo broken warnings keep limits",
        file=TEXT,
        revision=maybe(TEXT),
        bytes=WHOLE,
        classes=WHOLE,
        samples=WHOLE,
        teach=FLAG,
        undo=maybe(table(text=TEXT, when=maybe(TEXT))),
        broken=maybe(TEXT),
        warnings=several(TEXT),
        expected=maybe(EXPECTED),
        keep=table(seconds=NUMBER, most=WHOLE, bytes=WHOLE, folder=FLAG),
        limits={"type": "object"},
    ),
    "Classes": table(
        revision=maybe(TEXT),
        accuracy=maybe(SHARE),
        interval=maybe(INTERVAL),
        classes=several(
            table(
                "label samples task",
                label=LABEL,
                samples=WHOLE,
                task=WHOLE,
                accuracy=maybe(SHARE),
                interval=maybe(INTERVAL),
            )
        ),
        confused=several(table(label=LABEL, taken_for=LABEL, share=SHARE)),
    ),
    "History": table(events=several(table("text", text=TEXT)), undo=FLAG),
    "Explanation": table(
        classes=several(
            table(label=LABEL, probability=SHARE, part=TEXT, taught=several({"type": "object"}))
        ),
        influence=several(several(NUMBER)),
        seconds=NUMBER,
        revision=TEXT,
    ),
    "Suggestions": table(
        suggestions=several(
            table(
                "id label doubt known why", id=TEXT, label=LABEL, doubt=SHARE, known=FLAG, why=TEXT
            )
        ),
        groups=several(several(TEXT)),
    ),
    "Recent": table(seconds=NUMBER, questions=several(ANSWER)),
    "Health": table(
        status={"type": "string", "enum": ["ok", "degraded"]},
        problem=maybe(TEXT),
        revision=maybe(TEXT),
    ),
}

NAME = {**TEXT, "minLength": 1, "description": "of the class, new or known"}
IDS = {**several(TEXT), "description": "pictures of /predict that are still remembered"}
REVISION = {**TEXT, "description": "refuse the change if the file is in another state by now"}


def json_body(schema: Schema) -> Schema:
    """What is sent as JSON."""
    return {"application/json": {"schema": schema}}


def form(**fields: Schema) -> Schema:
    """What is sent as a form with pictures."""
    images = {"images": several(BINARY)}
    return {"multipart/form-data": {"schema": table("images", **images, **fields)}}


RAW: Schema = {f"image/{kind}": {"schema": BINARY} for kind in ("jpeg", "png", "webp")}


def asked(name: str, schema: Schema, about: str) -> Schema:
    """Something in the address."""
    return {"name": name, "in": "query", "schema": schema, "description": about}


TOP: Schema = {"type": "integer", "minimum": 1, "maximum": MOST, "default": 1}
QUESTIONS = [
    asked("top", TOP, "how many classes to name"),
    asked("min_probability", {**SHARE, "default": 0}, "name only classes at least this probable"),
    asked("unknown", {**FLAG, "default": False}, "say whether it is any of the classes"),
    asked("threshold", SHARE, "how familiar it has to look to be known; implies unknown"),
    asked("error", SHARE, "answer only where at most this share of answers is wrong: adds sure"),
    asked("sets", SHARE, "name as many classes as hold the right one so often: adds set"),
    asked(
        "kept",
        {"type": "string", "enum": list(KEPT), "default": "tray"},
        "tray: remembered with a small picture, and listed in /recent; quiet: remembered by its "
        "id alone, to be taught; no: not at all",
    ),
]

#: What can be asked: method, path, what it does, what is answered, what is sent, and parameters.
OPERATIONS: tuple[tuple[str, str, str, str, Schema, list[Schema]], ...] = (
    ("post", "/predict", "Name the classes of pictures, or of remembered ones.", "Predictions",
     form() | RAW | json_body(table(ids=IDS)), QUESTIONS),
    ("post", "/learn", "Teach pictures of a class, new or known. Those that it was taught before "
     "are not counted again; those that another class was taught are moved.", "Lesson",
     form(name=NAME) | json_body(table("name ids", name=NAME, ids=IDS, revision=REVISION)), []),
    ("post", "/update", "Give a known class more pictures; each of them counts.", "Lesson",
     form(name=NAME) | json_body(table("name ids", name=NAME, ids=IDS, revision=REVISION)), []),
    ("post", "/rename", "Give a class another name.", "Renamed",
     json_body(table("from to", **{"from": NAME}, to=NAME, revision=REVISION)), []),
    ("post", "/merge-classes", "Make one class part of another.", "Merged",
     json_body(table("label other", label=NAME, other=NAME, revision=REVISION)), []),
    ("post", "/forget", "Remove a class, with a receipt.", "Forgotten",
     json_body(table("label", label=NAME, revision=REVISION)), []),
    ("post", "/undo", "Take back the last change, whoever made it.", "Undone",
     json_body(table("-", revision=REVISION)), []),
    ("get", "/status", "What the file knows, and how the server is set.", "Status", {}, []),
    ("get", "/classes", "Classes, what they are taken for, and a map of them.", "Classes", {},
     [asked("brief", {**FLAG, "default": False}, "only names and numbers of samples")]),
    ("get", "/history", "Every change of the file, oldest first.", "History", {}, []),
    ("post", "/explain", "Which parts of a picture speak for its class, and which for the next "
     "one: how much each of 8 by 8 parts adds to the first one's log-odds.", "Explanation",
     form(against=NAME) | RAW,
     [asked("picture", {**FLAG, "default": False}, "answer with a picture of it, as PNG")]),
    ("get", "/suggest", "Which pictures of /recent would teach most, the most telling first; and "
     "groups that look alike and like no class.", "Suggestions", {}, []),
    ("get", "/recent", "What was asked lately, newest first, and what the file says of it now.",
     "Recent", {}, []),
    ("post", "/recent/clear", "Forget questions: some, or all.", "Removed",
     json_body(table("-", ids=IDS)), []),
    ("get", "/health", "Whether it answers, and from the file as it is.", "Health", {}, []),
)  # fmt: skip
SCHEMAS["Removed"] = table(removed=WHOLE)

#: Paths that answer with something else than JSON.
OTHERS: dict[str, Schema] = {
    "/recent/{id}/picture": {
        "get": {
            "summary": "The small picture of a question.",
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": TEXT}],
            "responses": {"200": {"description": "a JPEG", "content": RAW}},
        }
    },
    "/metrics": {
        "get": {
            "summary": "Counters, in the format of Prometheus.",
            "responses": {"200": {"description": "text", "content": {"text/plain": {}}}},
        }
    },
}
REFUSED = {
    "description": "Refused: `error` says what was given, what was expected and what to do.",
    "content": {"application/json": {"schema": named("Error")}},
}


def description(file: str) -> dict[str, Any]:
    """The whole description; the file is named by its name alone."""
    paths: dict[str, Any] = {path: dict(found) for path, found in OTHERS.items()}
    for method, path, about, answer, body, parameters in OPERATIONS:
        operation: dict[str, Any] = {"summary": about, "parameters": parameters}
        if body:
            operation["requestBody"] = {"required": True, "content": body}
        content = {"application/json": {"schema": named(answer)}}
        if answer == "Explanation":
            content |= {"image/png": {"schema": BINARY}}
        operation["responses"] = {"200": {"description": answer, "content": content}}
        paths[path] = {method: operation}
    for found in paths.values():
        for operation in found.values():
            operation["responses"] = {**operation["responses"], "4XX": REFUSED, "503": REFUSED}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"FrugalVAE: {file}",
            "version": __version__,
            "description": "Ask, teach and correct a classifier of photographs.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
