"""The server under load, on this machine alone. ``make bench-serve``.

1. photographs a second and latency at 1, 8 and 64 clients, against the encoder without a server
   in the same run: each round measures all of them in turn, and medians are told;
2. memory over many requests;
3. requests of all kinds with kills of the server between: nothing answered may be lost.

Clients are one process of our own, which sends ready requests over connections that stay open.
Photographs are the birds in FRUGALVAE_DATA, or shapes that are drawn.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from lab.benchmarks.pictures import find_or_draw
from lab.benchmarks.serve_kills import lost, mixed_with_kills
from lab.benchmarks.serving import Served

CLIENTS = (1, 8, 64)
BATCH = 1_000  # requests of the long run that are sent in one go
CONNECTIONS = 16  # on which they are sent

ENCODER = """
import sys, time
from pathlib import Path
from frugalvae.encoders import Choice, load_encoder
from frugalvae.images.decode import reading_images
from frugalvae.images.photographs import encode_files
from frugalvae.images.decode import on_disk
seconds, paths = float(sys.argv[1]), [Path(word) for word in sys.argv[2:]]
encoder, _ = load_encoder({}, Choice(), "", print)
with reading_images():
    encode_files(encoder, [on_disk(path) for path in paths[:8]])
    started, worked, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - started < seconds:
        encode_files(encoder, [on_disk(path) for path in paths])
        count += len(paths)
print(count / (time.perf_counter() - started), (time.process_time() - worked) / count)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument(
        "--requests", type=int, default=100_000, metavar="N", help="of the long run"
    )
    parser.add_argument("--mixed", type=int, default=1_000, metavar="N", help="with kills between")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores; medians of {options.rounds} rounds\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, drawn = find_or_draw(Path(name) / "pictures")
        photographs = sorted((folder / "train").glob("*/*.jpg"))
        kind = "shapes that are drawn" if drawn else "photographs of birds"
        print(f"{len(photographs)} {kind}", flush=True)
        file = Path(name) / "served.frugal"
        subprocess.run(
            [sys.executable, "-m", "frugalvae", "learn", file, folder / "train", "--quiet"],
            check=True,
        )
        if options.rounds:
            rates(file, photographs, options)
        if options.requests:
            memory(file, photographs, options.requests)
        if options.mixed:
            kills(Path(name) / "killed.frugal", options.mixed)


# --------------------------------------------------------------------------- load


def rates(file: Path, photographs: list[Path], options: argparse.Namespace) -> None:
    """Photographs a second, and how long each takes."""
    served = Served(file)
    bodies = [path.read_bytes() for path in photographs]
    found: dict[int, list[tuple[float, ...]]] = {count: [] for count in CLIENTS}
    bare: list[tuple[float, ...]] = []
    try:
        load(served.port, bodies, 8, 1.0)  # the first answers wait for the encoder
        for _ in range(options.rounds):
            bare.append(without_server(photographs, options.seconds))
            for count in CLIENTS:
                before = worked(served.process.pid)
                rate, *times, total = measured(served.port, bodies, count, options.seconds)
                work = (worked(served.process.pid) - before) / total
                found[count].append((rate, work, *times))
    finally:
        served.close()
    show(found, bare)


def show(found: dict[int, list[tuple[float, ...]]], bare: list[tuple[float, ...]]) -> None:
    """A table of medians; shares are of the same round, in which a machine is as busy."""
    middle = statistics.median
    print(
        "\n| | photographs/s | of the encoder's | processor ms each | of the encoder's "
        "| median | p99 | p99 / median |\n| --- " + "| --- " * 7 + "|"
    )
    rate, work = (middle(column) for column in zip(*bare, strict=True))
    print(f"| encoder, no server | {rate:.1f} | | {1000 * work:.1f} | | | | |")
    for count, rounds in found.items():
        rate, work, usual, slow = (middle(column) for column in zip(*rounds, strict=True))
        pairs = list(zip(rounds, bare, strict=True))
        fast = middle(one[0] / alone[0] for one, alone in pairs)
        cheap = middle(alone[1] / one[1] for one, alone in pairs)
        tail = middle(one[3] / one[2] for one in rounds)
        print(
            f"| {count} clients | {rate:.1f} | {fast:.0%} | {1000 * work:.1f} | {cheap:.0%} "
            f"| {1000 * usual:.0f} ms | {1000 * slow:.0f} ms | {tail:.1f} |",
            flush=True,
        )


def without_server(photographs: list[Path], seconds: float) -> tuple[float, ...]:
    """Photographs a second that the encoder takes, read and decoded; and seconds of work each."""
    command = [sys.executable, "-c", ENCODER, str(seconds), *map(str, photographs)]
    alone = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=alone)
    return tuple(map(float, done.stdout.split()))


def worked(pid: int) -> float:
    """Seconds of work that a process has done so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measured(port: int, bodies: list[bytes], clients: int, seconds: float) -> tuple[float, ...]:
    """What :func:`load` tells, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(load, (port, bodies, clients, seconds))


def load(port: int, bodies: list[bytes], clients: int, seconds: float) -> tuple[float, ...]:
    """Ask with so many clients for so long: photographs a second, median, p99, photographs."""
    requests = [posted("/predict?top=3&unknown=1", body, "image/jpeg") for body in bodies]
    taken: list[float] = []

    async def client(number: int, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place = number * 7
        while time.perf_counter() < until:
            started = time.perf_counter()
            writer.write(requests[place % len(requests)])
            await answered(reader)
            taken.append(time.perf_counter() - started)
            place += 1
        writer.close()

    async def all_of_them() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(client(number, started + seconds) for number in range(clients)))
        return time.perf_counter() - started

    elapsed = asyncio.run(all_of_them())
    taken.sort()
    slow = taken[min(int(0.99 * len(taken)), len(taken) - 1)]
    return len(taken) / elapsed, statistics.median(taken), slow, len(taken)


def posted(path: str, body: bytes, kind: str) -> bytes:
    """A request as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answered(reader: asyncio.StreamReader) -> bytes:
    """The body of an answer, which must be one of success."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    return await reader.readexactly(length)


# --------------------------------------------------------------------------- memory


def memory(file: Path, photographs: list[Path], count: int) -> None:
    """Memory of the server over many small requests: of a hundred, two bring a photograph.

    The others ask again about remembered ones, which is all but the encoding, or for the status.
    """
    served = Served(file)
    try:
        ids = [served.raw("/predict?kept=quiet", path).json["predictions"][0]["id"]
               for path in photographs[:8]]  # fmt: skip
        again = posted("/predict?top=5&unknown=1", json.dumps({"ids": ids[:1]}).encode(),
                       "application/json")  # fmt: skip
        image = posted("/predict", photographs[0].read_bytes(), "image/jpeg")
        status = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        mixture = [image] * 2 + [status] * 18 + [again] * 80
        print(f"\n{count:,} requests, 2 % of them with a photograph; megabytes of the server:")
        shown = max(count // 10, BATCH)
        started = time.perf_counter()
        for done in range(0, count, BATCH):
            if done % shown == 0:
                print(f"{done:>9,}  {resident(served):.0f}", flush=True)
            asyncio.run(several(served.port, mixture * (BATCH // 100)))
        seconds = time.perf_counter() - started
        print(
            f"{count:>9,}  {resident(served):.0f}   ({count / seconds:.0f} requests/s)", flush=True
        )
    finally:
        served.close()


async def several(port: int, requests: list[bytes]) -> None:
    """Requests on some connections, one after the other on each."""

    async def client(part: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in part:
            writer.write(request)
            await answered(reader)
        writer.close()

    parts = (requests[start::CONNECTIONS] for start in range(CONNECTIONS))
    await asyncio.gather(*map(client, parts))


def resident(served: Served) -> float:
    """Megabytes of memory that the server has."""
    lines = served.get("/metrics").content.decode().splitlines()
    return (
        next(float(line.split()[1]) for line in lines if line.startswith("frugalvae_resident"))
        / 1e6
    )


# --------------------------------------------------------------------------- kills


def kills(file: Path, requests: int) -> None:
    """Requests of all kinds while the server is killed again and again."""
    served = Served(file, "--teach")
    try:
        tally = mixed_with_kills(served, small_picture, range(requests), every=4.0)
        wrong = lost(served, tally)
    finally:
        served.close()
    print(
        f"\n{requests:,} mixed requests, {tally.kills} kills: {tally.answered} answered, "
        f"{tally.unanswered} cut off; {len(tally.learned)} lessons answered with success, "
        f"{wrong or 'none of them lost'}",
        flush=True,
    )
    if wrong:
        raise SystemExit("something that was answered is lost")


def small_picture(number: int) -> bytes:
    """A picture unlike all others."""
    buffer = io.BytesIO()
    shade = (number % 256, 40 * (number % 5), number // 256)
    Image.new("RGB", (64, 48), shade).save(buffer, "PNG")
    return buffer.getvalue()


if __name__ == "__main__":
    main()
