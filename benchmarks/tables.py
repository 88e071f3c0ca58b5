"""The tables of README and docs: one command each, over seeds, resumable.

``python -m benchmarks.tables NAME`` runs what is missing of a table, writes every run
to ``results/NAME`` as it ends, and prints the table. Feature files are looked for in the
folder that FRUGALVAE_DATA names (default: ``data``).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from frugalvae.files import write_text
from frugalvae.heads import make_head
from frugalvae.memories import make_memory
from frugalvae.registry import settings_of

DATA = Path(os.environ.get("FRUGALVAE_DATA", "data"))


@dataclass(frozen=True)
class Row:
    """A memory, what is changed in it, and a head."""

    name: str
    memory: str = "vae-fo"
    changed: dict[str, Any] | None = None
    head: str = "cosine"


@dataclass(frozen=True)
class Table:
    """Rows that are measured alike."""

    data: str
    tasks: int
    rows: list[Row]
    common: dict[str, Any]
    seeds: tuple[int, ...] = (0, 1, 2)
    held_out: float | None = None


NULL_SPACE = [
    Row("VAE-FO without class-wise normalisation", changed={"classwise": False}),
    Row("… free decoder", changed={"classwise": False, "decoder": "free"}),
    Row("… frozen after the first task", changed={"classwise": False, "decoder": "frozen"}),
    Row("VAE-FO"),
    Row("… free decoder", changed={"decoder": "free"}),
    Row("… frozen after the first task", changed={"decoder": "frozen"}),
    Row("VAE-FOD", "vae-fod"),
    Row("one diagonal Gaussian per class", "gaussian-diagonal"),
    Row("store everything", "store-all"),
    Row("nothing stored, streaming LDA head", "none", head="lda"),
]

#: Each row changes one decision; `docs/paper.md` says why it was taken.
DECISIONS = [
    Row("as decided"),
    Row("λ divided by pairs, K (K - 1)", changed={"prior": "fpi-pairs"}),
    Row("λ divided by nothing", changed={"prior": "fpi-literal"}),
    Row("means drawn from N(0, I)", changed={"prior": "normal"}),
    Row("means drawn from U(-1, 1)", changed={"prior": "uniform"}),
    Row("encoder not relative to the class mean", changed={"relative": False}),
    Row("null space of prior samples, ratio 100", changed={"inputs": "prior"}),
    Row("… R at most 0.02", changed={"inputs": "prior", "max_proportion": 0.02}),
    Row("… of posterior samples, ratio 100", changed={"inputs": "posterior"}),
    Row("… of posterior means, ratio 100", changed={"inputs": "posterior-mean"}),
    Row("… of mini-batch means, ratio 100", changed={"inputs": "batch-mean"}),
    Row("projected gradient instead of update", changed={"projection": "gradient"}),
    Row("no warm-up of the divergence", changed={"warm_up": 0.0}),
    Row("no noise on samples", changed={"noise": 0.0}),
    Row("noise of the likelihood, N(x̂, I)", changed={"noise": 1.0}),
    Row(
        "learning rates of the paper", changed={"learning_rate": 5e-4, "later_learning_rate": 5e-5}
    ),
]

SMALL = {"hidden": 128, "latent": 32}
TABLES = {
    "null-space": Table("ucf101-clip_vit_b32", 10, NULL_SPACE, {}),
    "decisions": Table("digits", 5, DECISIONS, {**SMALL, "classwise": False}, held_out=0.25),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    name = parser.parse_args().table
    table, folder = TABLES[name], Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    cells = product(table.seeds, range(len(table.rows)))  # all rows of one seed first
    missing = [(name, row, seed) for seed, row in cells if not is_current(name, row, seed)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, written in enumerate(pool.map(run, missing), start=1):
            print(f"{done} of {len(missing)}: {written.name}", flush=True)
    text = markdown(name)
    write_text(folder / "table.md", text)
    print(text)


def path(name: str, row: int, seed: int) -> Path:
    """Where a run is written: named by all that sets it apart."""
    entry = TABLES[name].rows[row]
    changed = [f"{key}={value}" for key, value in (entry.changed or {}).items()]
    parts = [entry.memory, entry.head, *changed, f"seed{seed}"]
    return Path("results") / name / f"{'-'.join(parts)}.json"


def settings(name: str, row: int) -> dict[str, Any]:
    """What is changed in the memory of a row."""
    table, entry = TABLES[name], TABLES[name].rows[row]
    common = table.common if entry.memory.startswith("vae") else {}
    return {**common, **(entry.changed or {})}


def is_current(name: str, row: int, seed: int) -> bool:
    """Whether a run is there and was made with the settings of today."""
    file, entry = path(name, row, seed), TABLES[name].rows[row]
    if not file.exists():
        return False
    recorded = json.loads(file.read_text())["settings"]
    memory, head = make_memory(entry.memory, **settings(name, row)), make_head(entry.head)
    wanted = {
        "memory": {"name": entry.memory, **settings_of(memory)},
        "head": {"name": entry.head, **settings_of(head)},
        "seed": seed,
        "held_out": TABLES[name].held_out,
    }
    plain = json.loads(json.dumps(wanted))
    return all(recorded.get(key) == value for key, value in plain.items())


def run(cell: tuple[str, int, int]) -> Path:
    """Make one run and write it."""
    import torch

    from frugalvae.experiments.command import run_features

    torch.set_num_threads(1)  # one process a core: faster than one process on all
    warnings.simplefilter("ignore")
    name, row, seed = cell
    table, entry = TABLES[name], TABLES[name].rows[row]
    with tempfile.TemporaryDirectory() as folder:
        run_features(
            feature_file(table.data, Path(folder)),
            tasks=table.tasks,
            memory=entry.memory,
            head=entry.head,
            settings={"memory": settings(name, row), "head": {}},
            seed=seed,
            held_out=table.held_out,
            output=path(name, row, seed),
            quiet=True,
        )
    return path(name, row, seed)


def feature_file(name: str, folder: Path) -> Path:
    """The file of a data set; digits come with scikit-learn and are written on the spot."""
    if name != "digits":
        if not (DATA / f"{name}.npz").exists():
            raise SystemExit(f"{DATA / name}.npz is not there; set FRUGALVAE_DATA to its folder")
        return DATA / f"{name}.npz"
    import numpy as np

    from frugalvae.data.digits import load_digits

    digits = load_digits()
    np.savez(
        folder / "digits.npz",
        x_train=digits.x_train,
        y_train=digits.y_train,
        x_test=digits.x_test,
        y_test=digits.y_test,
    )
    return folder / "digits.npz"


def markdown(name: str) -> str:
    """Mean and standard deviation over seeds."""
    lines = [
        "| memory | final average accuracy | forgetting | numbers, as the paper counts | stored |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row, entry in enumerate(TABLES[name].rows):
        files = [path(name, row, seed) for seed in TABLES[name].seeds]
        records = [json.loads(file.read_text()) for file in files]
        accuracy = spread([record["metrics"]["final_average_accuracy"] for record in records])
        forgetting = spread([record["metrics"]["forgetting"] for record in records])
        counts = [f"{records[0]['memory'][kind] / 1e6:.2f} M" for kind in ("paper", "stored")]
        lines.append(f"| {entry.name} | {accuracy} | {forgetting} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def spread(shares: list[float]) -> str:
    """Mean ± standard deviation, in percent."""
    return f"{100 * statistics.mean(shares):.1f} ± {100 * statistics.stdev(shares):.1f}"


if __name__ == "__main__":
    main()
