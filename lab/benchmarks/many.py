"""What learning costs as samples come. Run with ``make bench-many``.

Feature shards of 25,000 rows are simulated on disk: 512 features, 100 classes. They are encoded
no more, but read, summed and taught a share at a time, as ``frugalvae learn`` does it, in a process
of its own whose peak memory is measured: 25,000 and 100,000 rows, in one process and in two, whose
files are compared; and a million rows with ``--rows 1000000``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FEATURES, CLASSES, SHARD = 512, 100, 25_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[25_000, 100_000])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--learn", type=Path, help=argparse.SUPPRESS)  # what the process does
    options = parser.parse_args()
    if options.learn:
        print(json.dumps(learn(options.learn, options.rows[0], options.jobs[0])))
        return
    print(f"{FEATURES} features, {CLASSES} classes; NumPy {np.__version__}")
    print("rows       jobs  seconds  rows/s   peak memory  of a worker  file     its arrays")
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            write_shards(Path(folder), rows)
            for jobs in options.jobs:
                show(rows, jobs, measured(Path(folder), rows, jobs))


def measured(folder: Path, rows: int, jobs: int) -> dict[str, float | str]:
    """What :func:`learn` finds in a process of its own."""
    words = ["--learn", str(folder), "--rows", str(rows), "--jobs", str(jobs)]
    command = [sys.executable, "-m", "lab.benchmarks.many", *words]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float | str] = json.loads(ended.stdout.splitlines()[-1])
    return found


def show(rows: int, jobs: int, found: dict[str, float | str]) -> None:
    rate, megabytes = rows / float(found["seconds"]), float(found["bytes"]) / 1e6
    print(
        f"{rows:9,}  {jobs:4}  {found['seconds']:7.1f}  {rate:6,.0f}  {found['peak']:8.0f} MB  "
        f"{found['worker']:8.0f} MB  {megabytes:.2f} MB  {found['digest']}",
        flush=True,
    )


def shard_path(folder: Path, number: int) -> Path:
    return folder / f"{number:03}.npz"


def write_shards(folder: Path, rows: int) -> None:
    """Features of classes with a mean each and a covariance in common, as some encoders have."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    mixing = rng.normal(size=(FEATURES, FEATURES)).astype(np.float32) / FEATURES**0.5
    for number in range(-(-rows // SHARD)):
        path = shard_path(folder, number)
        if not path.exists():
            rng = np.random.default_rng([1, number])
            y = rng.integers(CLASSES, size=SHARD)
            x = means[y] + rng.standard_normal((SHARD, FEATURES), np.float32) @ mixing
            np.savez(path, x=x, y=y)


def learn(folder: Path, rows: int, jobs: int) -> dict[str, float | str]:
    """Teach all shards, write the file, and say what that took."""
    from frugalvae.encoding import add_up, chunk_count, chunks_of
    from frugalvae.engines import in_processes, run_in_process
    from frugalvae.images.feature_file import read_arrays, stored_rows
    from frugalvae.model.model import Model, Sums
    from frugalvae.samples import Rows, Samples
    from frugalvae.storage.model_file import read_file, save

    started, chunks = time.perf_counter(), []
    for number in range(-(-rows // SHARD)):
        path = shard_path(folder, number)
        table, y = stored_rows(path, "x"), read_arrays(path, {"y"})["y"]
        assert table is not None
        rows = Rows(table, np.arange(len(y)))
        samples = Samples(path.name, [""] * len(y), rows=rows, labels=y)
        chunks += chunks_of(samples, chunk_count(len(y), photographs=False))
    engine = in_processes(jobs) if jobs > 1 else run_in_process
    x, numbers, memory, *_ = add_up(Model(), chunks, engine, None)
    labels = np.array([f"class {n}" for n in range(CLASSES)])
    model = Model().learn(x, labels[numbers], sums=Sums(labels, memory, memory.counts_))
    save(model, folder / "all.frugal")
    seconds = time.perf_counter() - started
    arrays = read_file(folder / "all.frugal").arrays
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    return {
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "worker": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3,
        "bytes": (folder / "all.frugal").stat().st_size,
        "digest": hashlib.sha256(content).hexdigest()[:8],
    }


if __name__ == "__main__":
    main()
