"""Speed of encoders: ``python -m lab.benchmarks.encoding [rate|batches|models|whole ...]``.

``rate``: images a second of EfficientNet-Lite0 alone, on one thread: ONNX Runtime against
PyTorch. ``batches``: time of the processor and memory by the size of a batch, each in a
process of its own. ``models``: time and accuracy of Lite0, Lite1 and Lite2 on the photographs
of ``birds`` in FRUGALVAE_DATA. ``whole``: files to feature file, against the network alone.
What is compared is timed in turns, so that a noisy machine slows both alike.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from frugalvae.encoders.efficientnet import MODELS, EfficientNetEncoder, find_checkpoint
from frugalvae.encoding import encode_folder
from frugalvae.images import BATCH_SIZE
from frugalvae.images.decode import decode
from frugalvae.parts.protocols import Encoder
from frugalvae_lab.bench.data_sources import in_data_folder

SIZES = (1, 2, 4, 8, 16, 32, 64)
SPLITS = 50


def main() -> None:
    parts = {"rate": rate, "batches": batches, "models": models, "whole": whole}
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}, or batch")
    chosen = options.parse_args().parts or list(parts)
    if chosen[0] == "batch":
        return one_batch(int(chosen[1]), int(chosen[2]))
    for part in chosen:
        print(f"{part}\n")
        parts[part]()
        print()
    return None


# --------------------------------------------------------------------------- the network alone


def rate(images: int = 64, turns: int = 5) -> None:
    before, now = in_pytorch("lite0"), EfficientNetEncoder(threads=1).encode
    batch = np.random.default_rng(0).normal(size=(images, 3, 224, 224)).astype(np.float32)
    compared = {
        "PyTorch, batches of 64": (before, 64),  # as it was the default
        f"PyTorch, batches of {BATCH_SIZE}": (before, BATCH_SIZE),
        f"ONNX Runtime, batches of {BATCH_SIZE}": (now, BATCH_SIZE),
    }
    taken: dict[str, list[float]] = {name: [] for name in compared}
    for name, (network, size) in list(compared.items()) * turns:
        taken[name].append(processor_time(network, batch, size) / images)
    best = list(taken.values())[-1]
    print(f"images a second of one core, median of {turns}; and how often that goes into the last")
    for name, seconds in taken.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, best, strict=True))
        print(f"{name:<26} {1 / statistics.median(seconds):>7.1f} {ratio:>6.2f}")


def in_pytorch(model: str) -> Callable[[np.ndarray], object]:
    """The same network in PyTorch, as it ran before: colours last in memory."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    torch.set_num_threads(1)
    network = EfficientNet.from_name(f"efficientnet-{model}")
    network.load_state_dict(torch.load(find_checkpoint(model), weights_only=True))
    network = network.eval().requires_grad_(False).to(memory_format=torch.channels_last)

    def encode(batch: np.ndarray) -> object:
        with torch.inference_mode():
            x = torch.from_numpy(batch).to(memory_format=torch.channels_last)
            return network.extract_features(x).mean(dim=(2, 3))

    return encode


def processor_time(
    network: Callable[[np.ndarray], object], images: np.ndarray, size: int = BATCH_SIZE
) -> float:
    """Seconds of the processor for all images: others at work do not count."""
    started = time.process_time()
    for start in range(0, len(images), size):
        network(images[start : start + size])
    return time.process_time() - started


# --------------------------------------------------------------------------- sizes of batches


def batches() -> None:
    print(f"{'batch':>5} {'threads':>7} {'ms':>7} {'user ms':>8} {'system ms':>9} {'peak MB':>8}")
    for threads in (1, 2):
        for size in SIZES:
            command = [sys.executable, "-m", "lab.benchmarks.encoding", "batch", str(size)]
            print(subprocess.check_output([*command, str(threads)], text=True), end="", flush=True)


def one_batch(size: int, threads: int) -> None:
    """A line for one size: the best time an image, and all that the processor did for one."""
    encoder = EfficientNetEncoder(threads=threads)
    batch = np.random.default_rng(0).random((size, 3, 224, 224), np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF)
    encoder.encode(batch)
    start, times = resource.getrusage(resource.RUSAGE_SELF), []
    for _ in range(256 // size):
        started = time.perf_counter()
        encoder.encode(batch)
        times.append((time.perf_counter() - started) / size)
    end, images = resource.getrusage(resource.RUSAGE_SELF), 256 // size * size
    user, system = (end.ru_utime - start.ru_utime), (end.ru_stime - start.ru_stime)
    print(
        f"{size:>5} {threads:>7} {1000 * min(times):>7.2f} {1000 * user / images:>8.2f} "
        f"{1000 * system / images:>9.2f} {(end.ru_maxrss - before.ru_maxrss) / 1024:>8.0f}"
    )


# --------------------------------------------------------------------------- three models


def models() -> None:
    found = in_data_folder("birds")
    if not found:
        return print("skipped: there are no birds; set FRUGALVAE_DATA to where they are")
    paths = sorted(found[0].rglob("*.jpg"))
    labels = np.array([path.parent.name for path in paths])
    print(f"{len(paths)} photographs of {len({*labels})} birds, {SPLITS} halvings of each class\n")
    print(f"{'model':<6} {'ms an image':>11} {'nearest mean':>13} {'default':>8}")
    for model in MODELS:
        encoder = EfficientNetEncoder(model, threads=1)
        images = np.stack([encoder.prepare(decode(path.read_bytes())) for path in paths])
        taken = processor_time(encoder.encode, images) / len(images)
        x = np.concatenate([encoder.encode(image[None]) for image in images])
        scores = np.mean([halved(x, labels, seed) for seed in range(SPLITS)], axis=0)
        print(f"{model:<6} {1000 * taken:>11.1f} {scores[0]:>13.1%} {scores[1]:>8.1%}", flush=True)
    return None


def halved(x: np.ndarray, labels: np.ndarray, seed: int) -> tuple[float, float]:
    """Accuracy on one half of each class after learning the other: nearest mean, and default."""
    from frugalvae import FrugalClassifier

    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(labels == name)) for name in np.unique(labels)]
    train = np.concatenate([of_class[: len(of_class) // 2] for of_class in rows])
    test = np.setdiff1d(np.arange(len(labels)), train)
    classes = np.unique(labels)
    means = np.stack([x[train][labels[train] == name].mean(axis=0) for name in classes])
    distances = np.linalg.norm(x[test][:, None] - means, axis=2)  # (n, classes)
    nearest = float(np.mean(classes[distances.argmin(axis=1)] == labels[test]))
    taught = FrugalClassifier().partial_fit(x[train], labels[train])
    return nearest, float(taught.score(x[test], labels[test]))


# --------------------------------------------------------------------------- files to features


def whole(images: int = 192, turns: int = 5) -> None:
    print(f"{os.cpu_count()} cores; {images} photographs of 500 x 375, {turns} turns\n")
    print(f"{'encoder':<24} {'images/s':>9} {'network alone':>14} {'ratio':>7} {'decoding':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photographs(folder / "images", images)
        for title, encoder in (
            ("EfficientNet-Lite0", EfficientNetEncoder()),
            ("CLIP ViT-B/32", clip_b32(folder / "clip")),
        ):
            print(f"{title:<24} {compare(folder, encoder, images, turns)}", flush=True)


def compare(folder: Path, encoder: Encoder, count: int, turns: int) -> str:
    """Rates of both, the median of the ratios of each turn, and milliseconds for an image."""
    ready, decoding = prepared(folder / "images", encoder)
    together, alone = [], []
    for _ in range(turns):
        started = time.perf_counter()
        encode_folder(folder / "images", folder / "out.npz", encoder)
        between = time.perf_counter()
        for start in range(0, count, BATCH_SIZE):
            encoder.encode(ready[start : start + BATCH_SIZE])
        together.append(count / (between - started))
        alone.append(count / (time.perf_counter() - between))
    ratio = statistics.median(a / b for a, b in zip(together, alone, strict=True))
    rates = f"{statistics.median(together):>9.1f} {statistics.median(alone):>14.1f}"
    return f"{rates} {ratio:>7.0%} {1000 * decoding:>6.1f} ms"


def prepared(folder: Path, encoder: Encoder) -> tuple[np.ndarray, float]:
    """All images as arrays, and the seconds that one takes."""
    paths = sorted(folder.rglob("*.jpg"))
    started = time.perf_counter()
    ready = [encoder.prepare(decode(path.read_bytes(), encoder.side)) for path in paths]
    return np.stack(ready), (time.perf_counter() - started) / len(paths)


def photographs(folder: Path, count: int) -> None:
    """JPEGs of about 60 kB, as photographs of that size have: smooth noise with grain."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (48, 64, 3), np.uint8)
        smooth = Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC)
        grain = rng.normal(0, 6, (375, 500, 3))
        pixels = (np.asarray(smooth) + grain).clip(0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "jpeg", quality=85)
        path = folder / f"class{number % 8}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue())


def clip_b32(folder: Path) -> Encoder:
    """An image tower of the size of ViT-B/32, the default of ``transformers``; random weights."""
    from transformers import CLIPImageProcessorPil, CLIPVisionConfig, CLIPVisionModelWithProjection
    from transformers.utils.logging import disable_progress_bar

    from frugalvae.encoders.transformers import TransformersEncoder

    disable_progress_bar()
    CLIPVisionModelWithProjection(CLIPVisionConfig()).save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)
    return TransformersEncoder(folder)


if __name__ == "__main__":
    main()
