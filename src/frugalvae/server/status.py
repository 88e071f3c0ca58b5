"""Status: what the file knows, what was done to it, and how the server is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from frugalvae import __version__
from frugalvae.model.answers import FEW
from frugalvae.model.history import in_words
from frugalvae.model.neighbours import CONFUSED
from frugalvae.server.models import ClassesOptions
from frugalvae.server.requests import parse

if TYPE_CHECKING:
    from frugalvae.server.app import ServerState
    from frugalvae.server.served import Snapshot

PAIRS = 50  # of classes that are confused, at most
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


async def status(server: ServerState, _: Request) -> dict[str, Any]:
    """What the file knows, and how the server is set."""
    snapshot = await server.served.refresh()
    settings, limits = server.settings, server.settings.limits
    return {
        **nothing_known(),
        **(what_is_known(snapshot) if snapshot else {}),
        "file": server.served.name,
        "revision": snapshot.revision if snapshot else None,
        "teach": settings.teach,
        "undo": last_change(server, snapshot),
        "broken": server.served.problem,
        "version": __version__,
        "keep": {
            "seconds": limits.seconds_remembered,
            "most": limits.recent,
            "bytes": limits.remembered,
            "folder": settings.keep is not None,
        },
        "limits": {
            "bytes": limits.body,
            "images": limits.images,
            "pixels": limits.pixels,
            "requests": limits.requests,
            "seconds": limits.seconds,
        },
    }


def nothing_known() -> dict[str, Any]:
    """The status of a file that does not exist yet."""
    return {
        **dict.fromkeys(("bytes", "classes", "samples"), 0),
        **dict.fromkeys(("encoder", "expected")),
        "tasks": [],
        "components": {},
        "warnings": [],
        "aliases": {},
    }


def what_is_known(snapshot: Snapshot) -> dict[str, Any]:
    """What a file says of itself, but for where anything is on this machine."""
    from frugalvae.encoders import described

    found = snapshot.summary.to_json()
    encoder = described(found["encoder"]) if found["encoder"] else None
    return {**found, "encoder": encoder, "samples": int(snapshot.model.n_samples_of_class.sum())}


def last_change(server: ServerState, snapshot: Snapshot | None) -> dict[str, Any] | None:
    """What ``POST /undo`` would take back."""
    if snapshot is None or not server.served.store.undo.exists():
        return None
    event = event_json(snapshot.model.history[-1] if snapshot.model.history else {})
    return {"when": None, **event, "text": event["text"] or "the last change"}


def event_json(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of the history, also in words."""
    return {**event, "text": f"{event.get('action', '')} {in_words(event)}".strip()}


async def classes(server: ServerState, request: Request) -> dict[str, Any]:
    """Classes, what they are taken for, and a map of them."""
    options, snapshot = parse(ClassesOptions, request.query_params), await server.served.refresh()
    found: dict[str, Any] = {
        "revision": snapshot.revision if snapshot else None,
        "accuracy": None,
        "interval": None,
        "classes": [],
        "confused": [],
    }
    if snapshot is None:
        return found
    model = snapshot.model
    columns = (model.classes.tolist(), model.n_samples_of_class, model.task_of_class)
    found["classes"] = [
        {"label": label, "samples": int(count), "task": int(task)}
        for label, count, task in zip(*columns, strict=True)
    ]
    if not options.brief and found["classes"]:
        found |= await server.encoders.run(lambda: with_neighbours(snapshot, found["classes"]))
    return found


def with_neighbours(snapshot: Snapshot, known: list[dict[str, Any]]) -> dict[str, Any]:
    """Classes with what is expected of each, and where it lies among the others."""
    forecast = snapshot.model.forecast
    found, expected = snapshot.neighbours, forecast.to_json() if forecast else None
    most, pairs = max(one["samples"] for one in known), []
    for one in known:
        label, few = one["label"], 0 < one["samples"] < FEW <= most
        near = found.nearest.get(label, [])
        place = found.places.get(label, [None, None])
        one |= {
            "accuracy": expected and expected["classes"].get(str(label)),
            "interval": expected and expected["intervals"].get(str(label)),
            "warnings": [f"fewer than {FEW} samples, and so often missed"] if few else [],
            "x": place[0],
            "y": place[1],
            "nearest": [
                {"label": other.label, "share": other.share, "distance": other.distance}
                for other in near
            ],
        }
        pairs += [
            {"label": label, "taken_for": other.label, "share": other.share}
            for other in near
            if other.share >= CONFUSED
        ]
    pairs.sort(key=lambda pair: -pair["share"])
    bounds = [expected["low"], expected["high"]] if expected and expected["enough"] else None
    accuracy = expected and expected["accuracy"]
    return {
        "accuracy": accuracy,
        "interval": bounds,
        "classes": known,
        "confused": pairs[:PAIRS],
    }


async def history(server: ServerState, _: Request) -> dict[str, Any]:
    """Every change of the file, oldest first."""
    snapshot = await server.served.refresh()
    events = [event_json(event) for event in (snapshot.model.history if snapshot else ())]
    return {"events": events, "undo": last_change(server, snapshot) is not None}


async def health(server: ServerState, _: Request) -> dict[str, Any]:
    """Whether it answers, and from the file as it is."""
    snapshot, problem = await server.served.refresh(), server.served.problem
    return {
        "status": "degraded" if problem else "ok",
        "problem": problem,
        "revision": snapshot.revision if snapshot else None,
    }


# --------------------------------------------------------------------------- counters


class Metrics:
    """What a server has done so far."""

    def __init__(self) -> None:
        self.started, self.in_flight, self.taught = time.time(), 0, 0
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.within: Counter[tuple[str, float]] = Counter()

    def count(self, path: str, status: int, seconds: float) -> None:
        """A request was answered; ``path`` is one of our own, however it was spelled."""
        self.requests[path, status] += 1
        self.seconds[path] += seconds  # type: ignore[assignment]
        for bound in BOUNDS:
            self.within[path, bound] += seconds <= bound


async def metrics(server: ServerState, _: Request) -> Response:
    """Counters, in the format of Prometheus."""
    await server.served.refresh()
    counted, last, lines = server.metrics, server.served.last, list[str]()

    def add(name: str, kind: str, about: str, values: Mapping[str, float]) -> None:
        lines.extend([f"# HELP frugalvae_{name} {about}", f"# TYPE frugalvae_{name} {kind}"])
        lines.extend(f"frugalvae_{labels} {value:.12g}" for labels, value in values.items())

    requests, times, totals = dict[str, float](), dict[str, float](), Counter[str]()
    for (path, code), count in sorted(counted.requests.items()):
        requests[f'requests_total{{path="{path}",status="{code}"}}'] = count
        totals[path] += count
    for path, total in sorted(totals.items()):
        for bound in BOUNDS:
            within = counted.within[path, bound]
            times[f'request_seconds_bucket{{path="{path}",le="{bound}"}}'] = within
        times[f'request_seconds_bucket{{path="{path}",le="+Inf"}}'] = total
        times[f'request_seconds_sum{{path="{path}"}}'] = counted.seconds[path]
        times[f'request_seconds_count{{path="{path}"}}'] = total
    add("requests_total", "counter", "Requests that were answered.", requests)
    add("request_seconds", "histogram", "How long requests took.", times)
    for name, kind, about, value in (
        ("requests_in_flight", "gauge", "Requests that are worked on.", counted.in_flight),
        ("images_total", "counter", "Images that were encoded.", server.encoders.count),
        ("taught_total", "counter", "Samples that were learned.", counted.taught),
        ("recent_questions", "gauge", "Remembered images.", len(server.pending.listed())),
        ("recent_bytes", "gauge", "Bytes of remembered images.", server.pending.bytes),
        ("classes", "gauge", "Known classes.", last.summary.classes if last else 0),
        ("file_bytes", "gauge", "Size of the file.", last.summary.bytes if last else 0),
        ("degraded", "gauge", "1 if the file cannot be read.", bool(server.served.problem)),
        ("start_time_seconds", "gauge", "When the server started.", counted.started),
        ("resident_memory_bytes", "gauge", "Memory of the process.", resident()),
    ):
        add(name, kind, about, {name: float(value)})
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def resident() -> int:
    """Bytes of memory that this process has; 0 where that cannot be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    import resource

    return pages * resource.getpagesize()
