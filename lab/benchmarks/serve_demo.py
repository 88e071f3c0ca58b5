"""A server that is taught three classes over HTTP, to be looked at. ``make serve-demo``.

Needs the base installation and the extra ``serve`` alone. Photographs are the birds in
FRUGALVAE_DATA, or shapes that are drawn. Nothing is opened: the address is printed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from lab.benchmarks.pictures import find_or_draw
from lab.benchmarks.serving import Served

CLASSES = 3
LEAST = 0.75  # of the test pictures that must be named right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="end when all is taught and asked")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any")
    options = parser.parse_args()
    print(f"PyTorch is {'installed, and not used' if find_spec('torch') else 'not installed'} here")
    with tempfile.TemporaryDirectory() as name:
        folder, drawn = find_or_draw(Path(name) / "pictures")
        print("no birds in FRUGALVAE_DATA: shapes are drawn" if drawn else "birds")
        started = time.perf_counter()
        served = Served(Path(name) / "demo.frugal", "--teach", "--port", options.port)
        try:
            served.get("/status")
            print(f"{time.perf_counter() - started:.2f} s from the start to the first answer")
            teach(served, folder)
            ask(served, folder)
            if not options.once:
                wait(served, folder)
        finally:
            code = served.stop()
        if code:
            raise SystemExit(f"the server ended with {code}: {served.log.read_text()}")
        print("the server has ended, and its file is gone with it")


def teach(served: Served, folder: Path) -> None:
    """Three classes, each in one request."""
    for place in sorted((folder / "train").iterdir())[:CLASSES]:
        told = served.send("/learn", sorted(place.iterdir())[:12], name=place.name).json
        after = told["after"]
        print(
            f"learned {told['label']} from {told['learned']} pictures in {told['seconds']:.1f} s: "
            f"{after['classes']} classes, {after['bytes'] / 1000:.1f} kB"
        )


def ask(served: Served, folder: Path) -> None:
    """All test pictures of these classes."""
    places = sorted((folder / "test").iterdir())[:CLASSES]
    right = total = 0
    for place in places:
        for path in sorted(place.iterdir()):
            [answer] = served.raw("/predict?top=3&unknown=1", path).json["predictions"]
            right += answer["top"][0]["label"] == place.name
            total += 1
    print(f"{right} of {total} test pictures are named right")
    if right < LEAST * total:
        raise SystemExit("fewer than three quarters are right: something is wrong")


def wait(served: Served, folder: Path) -> None:
    """Say what to try, until somebody has seen enough."""
    [photo, *_] = sorted((folder / "test").glob("*/*"))
    print(
        f"\nOpen {served.address} in a browser, or try\n\n"
        f"  curl -F images=@{photo} '{served.address}/predict?top=3&unknown=1'\n"
        f"  curl {served.address}/classes\n\n"
        "Teach it a class of your own, correct an answer, undo it. Ctrl-C ends it.",
        flush=True,
    )
    try:
        served.process.wait()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
