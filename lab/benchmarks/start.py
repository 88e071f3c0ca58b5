"""What a person waits for, before and after: two versions side by side. ``make bench-start``.

An older commit and the tree as it is are installed, each with what naming a photograph needs
and nothing else, into two environments below ``.bench``. Then both do the same in turns, so that
a noisy machine slows both alike, and the medians are printed with their ratio:

1. ``frugalvae predict`` of one photograph in a new process, files in the cache of the system;
2. ``frugalvae learn`` of 48 photographs;
3. images a second that the network alone makes features of, on one thread;
4. the size of the environment;
5. CIFAR-100 in ten tasks (``cifar100-efficientnet_lite0.npz`` in FRUGALVAE_DATA);
6. 10,000 features among 200 classes.

Then, as it is now: ``frugalvae predict`` of one photograph with a file of 100 classes of 1280
features, taught those of CIFAR-100 in five lessons, beside the least that any program needs: one
that imports NumPy, ONNX Runtime and Pillow, makes the network's session, and decodes and encodes
the photograph. ``--only cold`` measures nothing else.

Photographs are the birds in FRUGALVAE_DATA, or shapes that are drawn.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from frugalvae_lab.bench.data_sources import in_data_folder
from lab.benchmarks.pictures import find_or_draw

BEFORE = "6f64e5c"  # the last version that needed PyTorch to name a photograph
ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
CIFAR = "cifar100-efficientnet_lite0.npz"
UNWANTED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")  # as people have it: compiled once

NETWORK = """
import time, numpy as np
from frugalvae.encoders.efficientnet import EfficientNetEncoder
try:
    import torch; torch.set_num_threads(1); batch = torch.zeros
except ModuleNotFoundError:
    batch = lambda *shape: np.zeros(shape, np.float32)
encoder, x = EfficientNetEncoder(), batch(SIZE, 3, 224, 224)
encoder.encode(x)
started = time.perf_counter()
for _ in range(64 // SIZE):
    encoder.encode(x)
print(64 / (time.perf_counter() - started))
"""

STREAM = """
import sys, time, warnings, numpy as np
from frugalvae import FrugalClassifier
warnings.simplefilter("ignore")
features = np.load(sys.argv[1])
x, y = features["x_train"].astype(np.float32), features["y_train"]
classifier, started = FrugalClassifier(), time.perf_counter()
for part in np.array_split(np.unique(y)[:-1], 10):
    rows = np.isin(y, part)
    classifier.partial_fit(x[rows], y[rows])
print(time.perf_counter() - started)
"""

COMPARE = """
import time, warnings, numpy as np
from frugalvae import FrugalClassifier
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
means = rng.normal(size=(200, 1280)).astype(np.float32)
x = np.abs(np.repeat(means, 30, axis=0) + rng.normal(size=(6000, 1280)).astype(np.float32))
classifier = FrugalClassifier().fit(x, np.repeat(np.arange(200), 30))
classifier.predict(x[:10])
many = np.concatenate([x, x])[:10_000]
started = time.perf_counter()
classifier.predict(many)
print(time.perf_counter() - started)
"""


LEAST = """
import sys
import numpy as np, onnxruntime
from PIL import Image
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
image = Image.open(sys.argv[2]).convert("RGB")
scale = 256 / min(image.size)
image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BICUBIC)
left, top = ((side - 224) // 2 for side in image.size)
image = image.crop((left, top, left + 224, top + 224))
x = ((np.asarray(image, np.float32) - 127) / 128).transpose(2, 0, 1)[None]
session.run(None, {"images": np.ascontiguousarray(x)})
"""

LESSONS = """
import json, sys
from pathlib import Path
import numpy as np
from frugalvae.encoders.efficientnet import EfficientNetEncoder
from frugalvae.maths.arrays import unit
features, folder = np.load(sys.argv[1]), Path(sys.argv[2])
x, y, encoder = features["x_train"], features["y_train"], EfficientNetEncoder()
for number, classes in enumerate(np.array_split(np.unique(y), 5)):
    rows = np.concatenate([np.flatnonzero(y == label)[:100] for label in classes])
    named = np.array([f"class {label}" for label in y[rows]])
    told = np.array(json.dumps(encoder.identity))
    path = folder / f"lesson{number}.npz"
    np.savez(path, x_train=unit(x[rows].astype(np.float32)), y_train=named, encoder=told)
print(encoder.network.kept)
"""


class Version:
    """A version of the package in an environment of its own."""

    def __init__(self, name: str, commit: str | None) -> None:
        self.name, self.home = name, HOME / name
        self.bin, self.batch = self.home / "venv" / "bin", 64 if commit else 4
        if not (self.home / "ready").exists():
            shutil.rmtree(self.home, ignore_errors=True)
            self._install(commit)

    def _install(self, commit: str | None) -> None:
        source, extra = ROOT, ""
        if commit is not None:
            source, extra = self.home / "source", "[efficientnet]"
            source.mkdir(parents=True)
            archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=-1, check=True)
            subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
        subprocess.run([sys.executable, "-m", "venv", self.home / "venv"], check=True)
        pip = [self.bin / "python", "-m", "pip", "install", "--quiet"]
        with_torch = ["torch"] if commit is not None else []
        constraints = ["-c", source / "constraints.txt"]
        subprocess.run([*pip, *constraints, *with_torch, f"{source}{extra}"], check=True)
        (self.home / "ready").touch()

    def run(self, *words: object) -> float:
        """Seconds of a command in a new process."""
        started = time.perf_counter()
        self._process([self.bin / "frugalvae", *words])
        return time.perf_counter() - started

    def script(self, text: str, *words: object) -> float:
        """The number that a script prints."""
        text = text.replace("SIZE", str(self.batch))
        return float(self.printed(text, *words))

    def printed(self, text: str, *words: object) -> str:
        """What a script prints."""
        return self._process([self.bin / "python", "-c", text, *words])

    def _process(self, command: list[object]) -> str:
        environment = {k: v for k, v in os.environ.items() if k not in UNWANTED}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.home,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def megabytes(self) -> float:
        """What the environment takes on the disk."""
        return sum(p.lstat().st_blocks * 512 for p in (self.home / "venv").rglob("*")) / 1e6


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"default: {BEFORE}")
    options.add_argument("--turns", type=int, default=5, metavar="N", help="default: 5")
    options.add_argument("--only", choices=["cold"], help="measure this alone")
    options.add_argument("--keep", action="store_true", help="use environments that are there")
    chosen = options.parse_args()
    if not chosen.keep:
        shutil.rmtree(HOME / "after", ignore_errors=True)
    now, folder = Version("after", None), tempfile.TemporaryDirectory()
    with folder as name:
        if chosen.only is None:
            print(f"{chosen.turns} turns, one thread; medians, before and after, and their ratio\n")
            measure((Version("before", chosen.before), now), Path(name), chosen.turns)
        cold(now, Path(name), 4 * chosen.turns)


def measure(versions: tuple[Version, Version], folder: Path, turns: int) -> None:
    pictures, _ = find_or_draw(folder / "pictures")
    photographs = sorted((pictures / "train").glob("*/*"))
    few = folder / "few"
    for path in photographs[:: max(1, len(photographs) // 48)][:48]:
        place = few / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    one = photographs[0]
    for version in versions:
        version.run("learn", folder / f"{version.name}.frugal", few)

    def learn(version: Version) -> float:
        file = folder / f"{version.name}-again.frugal"
        file.unlink(missing_ok=True)
        return version.run("learn", file, few)

    def predict(version: Version) -> float:
        return version.run("predict", folder / f"{version.name}.frugal", one)

    compare("predict, one photograph, cold, s", predict, versions, 2 * turns)
    compare("learn, 48 photographs, s", learn, versions, turns)
    compare("network alone, images/s", lambda v: v.script(NETWORK), versions, turns)
    compare("environment, MB", Version.megabytes, versions, 1)
    cifar = in_data_folder(CIFAR)
    if cifar:
        path = cifar[0].resolve()
        compare("CIFAR-100 stream, s", lambda v: v.script(STREAM, path), versions, min(turns, 2))
    else:
        print("CIFAR-100 stream: skipped, its features are not in FRUGALVAE_DATA")
    compare("10,000 features, 200 classes, s", lambda v: v.script(COMPARE), versions, turns)


def cold(version: Version, folder: Path, turns: int) -> None:
    """One photograph with a file of real size, beside the least that any program needs."""
    cifar = in_data_folder(CIFAR)
    if not cifar:
        print("cold predict with a file of real size: skipped, CIFAR-100 is not in FRUGALVAE_DATA")
        return
    pictures, _ = find_or_draw(folder / "one")
    one, file = min((pictures / "train").glob("*/*")), folder / "real.frugal"
    network = version.printed(LESSONS, cifar[0].resolve(), folder).strip()
    for lesson in sorted(folder.glob("lesson*.npz")):
        version.run("learn", file, lesson)
    found = []
    for _ in range(turns):
        least = spent(lambda: version.printed(LEAST, network, one))
        found.append((least, spent(lambda: version.run("predict", file, one))))
    size = file.stat().st_size / 1e6
    print(f"\npredict with 100 classes in {size:.1f} MB; {turns} turns, medians")
    print(f"{'':<34} {'least':>9} {'predict':>9} {'ratio':>8}")
    for place, what in enumerate(("wall, s", "processor, s")):
        least, ours = (statistics.median(turn[side][place] for turn in found) for side in (0, 1))
        print(f"{what:<34} {least:>9.3f} {ours:>9.3f} {ours / least:>8.2f}", flush=True)


def spent(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds that pass, and seconds of processor time of the processes that it waits for."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run()
    passed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(
    what: str, measured: Callable[[Version], float], versions: tuple[Version, ...], turns: int
) -> None:
    """A row of the table: in each turn both, one after the other."""
    found = [[measured(version) for version in versions] for _ in range(turns)]
    before, after = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{what:<34} {before:>9.2f} {after:>9.2f} {after / before:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
