"""Speed of ``frugalvae encode``. Run with ``python -m benchmarks.encoding``.

Images a second of a whole encoding, files to feature file, against the encoder alone on
tensors that are ready. Both are timed in turns, so that a noisy machine slows both alike.
The encoders are EfficientNet-Lite0, and an image tower of CLIP of the size of ViT-B/32 with
random weights; the photographs are smooth noise, made here.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from frugalvae.data.pixels import decode
from frugalvae.encoders.base import Encoder
from frugalvae.encoders.clip import ClipEncoder
from frugalvae.encoders.efficientnet import EfficientNetEncoder
from frugalvae.encoding.folder import encode_folder

BATCH = 32


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--images", type=int, default=192, metavar="N")
    options.add_argument("--repeats", type=int, default=5, metavar="N")
    chosen = options.parse_args()
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{chosen.images} photographs of 500 x 375, batches of {BATCH}, {chosen.repeats} turns\n")
    print(f"{'encoder':<24} {'images/s':>9} {'network alone':>14} {'ratio':>7} {'decoding':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photographs(folder / "images", chosen.images)
        for title, encoder in (
            ("EfficientNet-Lite0", EfficientNetEncoder()),
            ("CLIP ViT-B/32", clip_b32(folder / "clip")),
        ):
            print(f"{title:<24} {compare(folder, encoder, chosen.images, chosen.repeats)}")


def compare(folder: Path, encoder: Encoder, count: int, repeats: int) -> str:
    """Rates of both, the median of the ratios of each turn, and milliseconds for an image."""
    ready, decoding = prepared(folder / "images", encoder)
    whole, alone = [], []
    for _ in range(repeats):
        started = time.perf_counter()
        encode_folder(folder / "images", folder / "out.npz", encoder, batch_size=BATCH)
        between = time.perf_counter()
        for start in range(0, count, BATCH):
            encoder.encode(ready[start : start + BATCH])
        whole.append(count / (between - started))
        alone.append(count / (time.perf_counter() - between))
    ratio = statistics.median(a / b for a, b in zip(whole, alone, strict=True))
    rates = f"{statistics.median(whole):>9.1f} {statistics.median(alone):>14.1f}"
    return f"{rates} {ratio:>7.0%} {1000 * decoding:>6.1f} ms"


def prepared(folder: Path, encoder: Encoder) -> tuple[torch.Tensor, float]:
    """All images as tensors, and the seconds that one takes."""
    paths = sorted(folder.rglob("*.jpg"))
    started = time.perf_counter()
    ready = [encoder.prepare(decode(path.read_bytes())) for path in paths]
    return torch.stack(ready), (time.perf_counter() - started) / len(paths)


def photographs(folder: Path, count: int) -> None:
    """JPEGs of about 60 kB, as photographs of that size have."""
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


def clip_b32(folder: Path) -> ClipEncoder:
    """The default settings of ``transformers`` are those of ViT-B/32."""
    from transformers import CLIPImageProcessorPil, CLIPVisionConfig, CLIPVisionModelWithProjection
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    CLIPVisionModelWithProjection(CLIPVisionConfig()).save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)
    return ClipEncoder(folder)


if __name__ == "__main__":
    main()
