"""Speed and size of the incremental VAE. Run with ``make bench``.

Reports four things, each measured here and now:

1. training throughput, against the bare matrix products that a step needs,
   both timed in turns so that a noisy machine slows both alike;
2. a whole 10-task run on CIFAR-100 features, if the file is there;
3. how the cost of one more task grows with the classes already known;
4. a grid of runs, by processes of one thread each against one of several threads, and what
   the runner adds to the runs themselves.

Feature files are looked for in the folder that FRUGALVAE_DATA names (default:
``data``). What is not there is skipped, and said to be.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from frugalvae import FrugalClassifier, make_head
from frugalvae.images.feature_file import load_features
from frugalvae.paper.vae_fo import Batch
from frugalvae.paper.variants import VAEMemory, VAESettings
from frugalvae.parts.protocols import Replay, Task
from frugalvae_lab.bench.data_sources import data_folder, in_data_folder
from frugalvae_lab.bench.grid import places
from frugalvae_lab.bench.pool import ProcessPool
from frugalvae_lab.bench.run import run_stream
from frugalvae_lab.bench.specification import parse


def in_data(name: str) -> Path:
    return next(iter(in_data_folder(name)), data_folder() / name)


CIFAR = in_data("cifar100-efficientnet_lite0.npz")
UCF = in_data("ucf101-clip_vit_b32.npz")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", choices=["throughput", "run", "growth", "grid"])
    chosen = options.parse_args().only
    warnings.simplefilter("ignore")
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    parts = {"throughput": throughput, "run": whole_run, "growth": growth, "grid": grid}
    for name, part in parts.items():
        if chosen in (None, name):
            print(f"\n{name}")
            part()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory of this process: {peak:.2f} GiB")


def throughput(repeats: int = 15) -> None:
    """A training step against its matrix products, at several batch sizes."""
    if not CIFAR.exists():
        print(f"skipped: {CIFAR} is not there; set FRUGALVAE_DATA to a folder of feature files")
        return
    x = torch.tensor(load_features(CIFAR).x_train[:512])
    print(f"{'batch':>6} {'samples/s':>10} {'products alone':>15} {'ratio':>7}")
    for batch_size in (32, 64, 128, 256, 512):
        step = training_step(x[:batch_size])
        products = matrix_products(step_shapes(x.shape[1]), batch_size)
        times = alternate(step, products, repeats)
        rates = [batch_size / statistics.median(part) for part in times]
        print(f"{batch_size:>6} {rates[0]:>10,.0f} {rates[1]:>15,.0f} {rates[0] / rates[1]:>7.0%}")


def training_step(x: torch.Tensor) -> Callable[[], object]:
    """One optimiser step of a null-space task, projection included."""
    rng = torch.Generator().manual_seed(0)
    memory = VAEMemory(epochs=1, max_steps=1)
    memory.learn(Task(x.numpy(), np.arange(len(x)) % 10), np.random.default_rng(0))
    decoder, steps = memory.decoders_[0], memory.steps
    change = steps.change(decoder, [], [steps.null_space(part) for part in decoder.inputs])
    assert memory.encoder_ is not None
    encoder = memory.encoder_
    optimiser = torch.optim.Adam([*encoder.parameters(), *change.parameters], fused=True)
    data = Batch(x, torch.zeros(len(x), memory.settings.latent))

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        current = steps.training.loss(encoder, decoder.network, data, 1.0, rng)
        current.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        change.after_step()

    return step


def step_shapes(dim: int, hidden: int = 512, latent: int = 256) -> list[tuple[int, int]]:
    encoder = [(dim, hidden), (hidden, hidden), (hidden, 2 * latent)]
    return [*encoder, (latent, hidden), (hidden, hidden), (hidden, dim)]


def matrix_products(shapes: list[tuple[int, int]], batch_size: int) -> Callable[[], object]:
    """Forward, gradient of the input and gradient of the weight of each layer."""
    operands = [
        (torch.randn(batch_size, n_in), torch.randn(n_in, n_out), torch.randn(batch_size, n_out))
        for n_in, n_out in shapes
    ]

    def products() -> None:
        for x, weight, gradient in operands:
            x @ weight
            gradient @ weight.T
            x.T @ gradient

    return products


def alternate(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[list[float], list[float]]:
    """Times of two functions, run in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 3):
        for part, function in zip(times, (first, second), strict=True):
            started = time.perf_counter()
            function()
            if turn >= 3:
                part.append(time.perf_counter() - started)
    return times


def whole_run() -> None:
    """All of CIFAR-100 in 10 tasks, with the default memory and head."""
    if not CIFAR.exists():
        print(f"skipped: {CIFAR} is not there; set FRUGALVAE_DATA to a folder of feature files")
        return
    features = load_features(CIFAR)
    started = time.perf_counter()
    record = run_stream(FrugalClassifier("vae-fo"), features, 10, seed=0)
    print(
        f"{features.name}: {time.perf_counter() - started:.0f} s for 10 tasks, final average "
        f"accuracy {record.metrics['final_average_accuracy']:.2%}"
    )


def growth() -> None:
    """One more task of 10 classes, when 10, 100 and 1,000 are known already.

    The latent space is wide enough for all: each class takes one of its directions.
    """
    if not UCF.exists():
        print(f"skipped: {UCF} is not there; set FRUGALVAE_DATA to a folder of feature files")
        return
    features = load_features(UCF)
    print(f"{'known':>6} {'memory, s':>10} {'head, s':>9}")
    for known in (10, 100, 1000):
        rng = np.random.default_rng(0)
        memory, head = VAEMemory(epochs=1, latent=1024, prior="normal"), make_head("cosine")
        memory.learn(simulated(features.x_train, features.y_train, range(known)), rng)
        memory.steps = VAESettings().steps  # the task to be timed is learned in full
        task = simulated(features.x_train, features.y_train, range(known, known + 10))
        started = time.perf_counter()
        memory.learn(task, rng)
        learned = time.perf_counter()
        head.learn(task, Replay(memory, rng))
        print(f"{known:>6} {learned - started:>10.1f} {time.perf_counter() - learned:>9.1f}")


def grid(runs: int = 4) -> None:
    """The same runs by one process on all cores, and by one process a core."""
    if not UCF.exists():
        print(f"skipped: {UCF} is not there; set FRUGALVAE_DATA to a folder of feature files")
        return
    features, cores = load_features(UCF), os.cpu_count() or 1
    row = {"name": "VAE-FO", "memory": {"name": "vae-fo", "classwise": False, "max_steps": 60}}
    experiment = parse("grid", {"title": "grid", "measure": "last task", "rows": [row]})
    about = {"ucf101": {"fingerprint": "", "backbone": ""}}
    cells = [cell for _, cell in places(experiment, about, range(runs))]
    print(f"{'processes':>9} {'threads':>8} {'wall, s':>8} {'runs, s':>8} {'runner adds':>12}")
    for processes, threads in ((1, cores), (cores, 1)):
        pool = ProcessPool(processes, threads)
        pool.share("ucf101", features)
        started, ended = time.perf_counter(), []
        waiting = list(cells)
        busy = 0
        while waiting or busy:
            while waiting and busy < processes:
                pool.start(waiting.pop(), "ucf101")
                busy += 1
            finished = pool.wait(0.5)
            busy -= len(finished)
            ended += finished
        wall = time.perf_counter() - started
        pool.close()
        own = sum(outcome.seconds for outcome in ended)
        added = wall * processes / own - 1
        print(f"{processes:>9} {threads:>8} {wall:>8.1f} {own:>8.1f} {added:>12.1%}")


def simulated(x: np.ndarray, y: np.ndarray, labels: range) -> Task:
    """Classes made of real ones: each a real class, its dimensions turned by its number."""
    names = np.unique(y)
    rows, targets = [], []
    for label in labels:
        samples = x[y == names[label % len(names)]]
        rows.append(np.roll(samples, label // len(names) * 37, axis=1))
        targets.append(np.full(len(samples), label))
    return Task(np.concatenate(rows), np.concatenate(targets))


if __name__ == "__main__":
    main()
