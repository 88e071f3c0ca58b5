"""Counters, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frugalvae.server.state import ServerState

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


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
            if seconds <= bound:
                self.within[path, bound] += 1

    def text(self, server: ServerState) -> str:
        """All of it."""
        last = server.served.last
        lines: list[str] = []

        def add(name: str, kind: str, about: str, *values: tuple[str, float]) -> None:
            lines.extend([f"# HELP frugalvae_{name} {about}", f"# TYPE frugalvae_{name} {kind}"])
            lines.extend(f"frugalvae_{name}{labels} {value:.12g}" for labels, value in values)

        requests = [
            (f'{{path="{path}",status="{status}"}}', count)
            for (path, status), count in sorted(self.requests.items())
        ]
        add("requests_total", "counter", "Requests that were answered.", *requests)
        self._histogram(lines)
        for name, kind, about, value in (
            ("requests_in_flight", "gauge", "Requests that are worked on.", self.in_flight),
            ("images_total", "counter", "Images that were encoded.", server.looker.count),
            ("taught_total", "counter", "Samples that were learned.", self.taught),
            ("recent_questions", "gauge", "Questions in the tray.", len(server.tray.shown())),
            ("recent_bytes", "gauge", "Bytes of remembered pictures.", server.tray.bytes),
            ("classes", "gauge", "Known classes.", last.summary.classes if last else 0),
            ("file_bytes", "gauge", "Size of the file.", last.summary.bytes if last else 0),
            ("degraded", "gauge", "1 if the file cannot be read.", bool(server.served.problem)),
            ("start_time_seconds", "gauge", "When the server started.", self.started),
            ("resident_memory_bytes", "gauge", "Memory of the process.", resident()),
        ):
            add(name, kind, about, ("", float(value)))
        return "\n".join(lines) + "\n"

    def _histogram(self, lines: list[str]) -> None:
        name = "frugalvae_request_seconds"
        lines += [f"# HELP {name} How long requests took.", f"# TYPE {name} histogram"]
        totals: Counter[str] = Counter()
        for (path, _), count in self.requests.items():
            totals[path] += count
        for path, total in sorted(totals.items()):
            for bound in BOUNDS:
                within = self.within[path, bound]
                lines.append(f'{name}_bucket{{path="{path}",le="{bound}"}} {within}')
            lines.append(f'{name}_bucket{{path="{path}",le="+Inf"}} {total}')
            lines.append(f'{name}_sum{{path="{path}"}} {self.seconds[path]:.6f}')
            lines.append(f'{name}_count{{path="{path}"}} {total}')


def resident() -> int:
    """Bytes of memory that this process has; 0 where that cannot be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    import resource

    return pages * resource.getpagesize()
