"""How far the results of one seed lie apart on other processors, and those of other seeds.

``python -m lab.benchmarks.portable``: ten digits in five tasks, as in ``decisions.toml`` (its
first row, a VAE) and ``closed-forms.toml`` (all rows). Each seed is run as
on a processor with SSE4 alone, with AVX2 and with AVX-512, as far as this one has them. Printed are

- the final average accuracy over seeds, in percent: mean, standard deviation, least and most;
- how far one seed's lies apart between processors at most, and its accuracy in one task;
- the same of the probabilities of test samples, from 0 to 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import check_choice
from frugalvae_lab.bench.run import run_stream
from frugalvae_lab.bench.specification import Experiment, Row, parse
from frugalvae_lab.images.dataset import load_digits

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
VARIABLES = "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "OPENBLAS_CORETYPE"
PROCESSORS = {
    "SSE4": ("default", "SSE41", "COMPATIBLE", "Nehalem"),
    "AVX2": ("avx2", "AVX2", "AVX2", "Haswell"),
    "AVX-512": ("avx512", "AVX512_CORE", "AVX512", "SkylakeX"),
}
KEYS = "accuracy", "probabilities"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=20, metavar="N", help="default: 20")
    options.add_argument("--rows", nargs="+", metavar="ROW")
    options.add_argument("--write", type=Path, help=argparse.SUPPRESS)  # what a process is told
    chosen = options.parse_args()
    wanted = rows(chosen.rows)
    if chosen.write:
        found = {name: measured(*row, chosen.seeds) for name, row in wanted.items()}
        np.savez(
            chosen.write, **{f"{name}/{key}": found[name][key] for name in found for key in KEYS}
        )
        return
    names = list(wanted)
    by_processor = [on_processor(processor, names, chosen.seeds) for processor in processors()]
    print(f"as with {', '.join(processors())}; {chosen.seeds} seeds")
    for name in names:
        show(name, *(np.array([found[name, key] for found in by_processor]) for key in KEYS))


def rows(names: Sequence[str] | None = None) -> dict[str, tuple[Experiment, Row]]:
    """All closed forms and the VAE, or some of them, by name; PyTorch only if it is needed."""
    found: dict[str, tuple[Experiment, Row]] = {}
    for name, most in (("closed-forms", None), ("decisions", 1)):
        if names is not None and found.keys() >= set(names):
            break
        text = (EXPERIMENTS / f"{name}.toml").read_text("utf-8")
        experiment = parse(name, tomllib.loads(text))
        found |= {row.name: (experiment, row) for row in experiment.rows[:most]}
    for name in names or ():
        check_choice("row", name, found)
    return {name: found[name] for name in names or found}


def processors() -> list[str]:
    """Those that this one can act as: beyond what it has, an instruction would be illegal."""
    import torch  # which processes that act as another do not need

    best = ["DEFAULT", "AVX2", "AVX512"].index(torch.backends.cpu.get_cpu_capability())
    return list(PROCESSORS)[: best + 1]


def on_processor(
    processor: str, names: Sequence[str], seeds: int
) -> dict[tuple[str, str], NDArray[Any]]:
    """What a process of its own measures, limited to what such a processor has."""
    limits = dict(zip(VARIABLES, PROCESSORS[processor], strict=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.npz"
        command = [sys.executable, "-m", "lab.benchmarks.portable", "--write", str(file)]
        subprocess.run(
            [*command, "--seeds", str(seeds), "--rows", *names],
            cwd=EXPERIMENTS.parents[1],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | limits,
            check=True,
        )
        with np.load(file) as arrays:
            return {(name, key): arrays[f"{name}/{key}"] for name in names for key in KEYS}


def measured(experiment: Experiment, row: Row, seeds: int) -> dict[str, NDArray[Any]]:
    """Last accuracies, (seeds, tasks), and probabilities, (seeds, test samples, classes)."""
    warnings.simplefilter("ignore")
    assert row.memory is not None
    assert row.head is not None
    features, last, probabilities = load_digits(), [], []
    if experiment.held_out is not None:
        features = features.held_out(experiment.held_out, seed=0)
    for seed in range(seeds):
        classifier = FrugalClassifier(
            make_memory(row.memory.name, **row.memory.given),
            make_head(row.head.name, **row.head.given),
            random_state=seed,
        )
        record = run_stream(classifier, features, 5, seed, every_task=False)
        last.append(record.accuracy[-1])
        probabilities.append(classifier.predict_proba(features.x_test))
    return {"accuracy": np.array(last), "probabilities": np.array(probabilities)}


def show(name: str, accuracy: NDArray[Any], probabilities: NDArray[Any]) -> None:
    """Of arrays whose first axis is the processor."""
    final = 100 * accuracy.mean(axis=2)  # (processors, seeds)
    spread = final.std(axis=1, ddof=1).mean() if final.shape[1] > 1 else 0.0
    print(
        f"{name}: {final.mean():.1f} ± {spread:.1f}, {final.min():.1f} to {final.max():.1f}; "
        f"between processors at most {np.ptp(final, axis=0).max():.1f}, in one task "
        f"{100 * np.ptp(accuracy, axis=0).max():.1f}, probabilities "
        f"{np.ptp(probabilities, axis=0).max():.0e}"
    )


if __name__ == "__main__":
    main()
