"""The demo: several memories learn ten digits in five tasks; a page shows what each keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugalvae.classifier import FrugalClassifier
from frugalvae.console import Display
from frugalvae.files import write_bytes, write_text
from frugalvae.formatting import count, percent
from frugalvae.images.feature_file import Features
from frugalvae.pages.plots import COLOURS
from frugalvae.pages.render import data_uri
from frugalvae.parts import make_memory
from frugalvae_lab.bench.metrics import accuracy_by_task
from frugalvae_lab.bench.run import Record, run_stream
from frugalvae_lab.images.dataset import load_digits
from frugalvae_lab.report import plots
from frugalvae_lab.report.plots import mosaic, png
from frugalvae_lab.report.render import render

#: Settings of all VAEs of the demo. Class-wise normalisation is off: the normaliser alone would
#: remember each digit's mean image, and would hide what the decoder remembers. No noise is
#: added, so that samples are readable.
VAE: dict[str, Any] = {
    "hidden": 128,
    "latent": 64,
    "epochs": 100,
    "batch_size": 64,
    "max_steps": 1000,
    "learning_rate": 1e-3,
    "later_learning_rate": 2e-3,  # few free directions need larger steps
    "classwise": False,
    "prior": "fpi",
    "inputs": "prior-mean",
    "relative": True,
    "noise": 0.0,
}

TASKS = 5
SAMPLES = 6  # of each digit after each task
SIDE = 8  # pixels

Images = NDArray[np.float32]
IN_PICTURE = ("moments", "VAE-FO", "no null space", "frozen decoder", "diagonal Gaussian")


class DemoMemory(NamedTuple):
    """How the page calls a memory, what it does, and what differs from :data:`VAE`."""

    name: str
    description: str
    memory: str
    changes: Mapping[str, Any] | None = None


MEMORIES = (
    DemoMemory(
        "VAE-FO",
        "One VAE for all digits. A new task may change the decoder only along directions that "
        "no earlier digit uses: their null space.",
        "vae-fo",
        {},
    ),
    DemoMemory(
        "no null space",
        "The same VAE, but a new task may change the whole decoder.",
        "vae-fo",
        {"decoder": "free"},
    ),
    DemoMemory(
        "VAE-FOD",
        "Like VAE-FO, but each task has its own last layer and biases.",
        "vae-fod",
        {},
    ),
    DemoMemory(
        "frozen decoder",
        "The same VAE, but the decoder does not change after task 1: it can only draw the "
        "first two digits.",
        "vae-fo",
        {"decoder": "frozen"},
    ),
    DemoMemory(
        "diagonal Gaussian",
        "No network: the mean and variance of every pixel, per digit.",
        "gaussian-diagonal",
    ),
    DemoMemory(
        "moments",
        "The default: count, mean and scatter of each digit, all of them sums. Bayes' rule "
        "classifies; nothing is trained.",
        "moments",
    ),
    DemoMemory(
        "store everything",
        "Keeps every training image: these are real digits.",
        "store-all",
    ),
)


@dataclass(frozen=True, eq=False)
class DemoRun:
    """A memory that was taught the digits.

    Attributes
    ----------
    name, description
        How the page calls the memory, and what it does.
    record
        What was measured.
    samples
        After each task, images of every class so far, shape (n, height, width).
    """

    name: str
    description: str
    record: Record
    samples: Sequence[Mapping[Any, Images]]

    @property
    def curve(self) -> list[float]:
        """After each task, the mean accuracy on the tasks so far."""
        return accuracy_by_task(self.record.accuracy)

    @property
    def final(self) -> float:
        """Accuracy after the last task."""
        return self.record.metrics["final_average_accuracy"]

    @property
    def seconds(self) -> float:
        """Time to learn and test all tasks."""
        return self.record.total_seconds

    @property
    def labels(self) -> list[Any]:
        """Classes in the order of teaching."""
        return [label for part in self.record.tasks for label in part]

    @property
    def layers(self) -> dict[int, list[dict[str, Any]]]:
        """The state of each layer of a null-space decoder, after each task."""
        states = self.record.layers
        numbers = sorted({state["layer"] for state in states})
        return {number: [s for s in states if s["layer"] == number] for number in numbers}


def teach(
    memory: DemoMemory, features: Features, seed: int, after_task: Callable[[], None]
) -> DemoRun:
    """Teach one memory all tasks and sample it after each."""
    settings = {} if memory.changes is None else {**VAE, **memory.changes}
    classifier = FrugalClassifier(make_memory(memory.memory, **settings), random_state=seed)
    samples: list[dict[Any, Images]] = []

    def sample(classifier: FrugalClassifier, _record: Record) -> None:
        samples.append(
            {
                label: classifier.sample(label, SAMPLES).reshape(SAMPLES, SIDE, SIDE)
                for label in classifier.model_.classes.tolist()
            }
        )
        after_task()

    made = {"memory": memory.memory, **settings}
    record = run_stream(classifier, features, TASKS, seed, sample, made)
    return DemoRun(memory.name, memory.description, record, samples)


def real_images(features: Features) -> dict[Any, Images]:
    """The first training images of each digit."""
    return {
        label: features.x_train[features.y_train == label][:SAMPLES].reshape(-1, SIDE, SIDE)
        for label in features.classes.tolist()
    }


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one PyTorch thread: networks this small are slower with more.

    On two busy cores, two threads made the demo more than five times slower.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# --------------------------------------------------------------------------- the page


def demo_page(runs: Sequence[DemoRun], **content: Any) -> str:
    """The HTML page; ``content`` is what ``demo.html`` needs besides the runs."""
    return render(
        "demo.html",
        runs={run.name: run for run in runs},
        pictures={run.name: pictures(run) for run in runs},
        curves=plots.accuracy_by_task(_curves(runs), bottom=0.0),
        colours=COLOURS,
        tasks=runs[0].record.tasks,
        labels=runs[0].labels,
        **content,
    )


def pictures(run: DemoRun, columns: int = 3) -> list[dict[Any, str]]:
    """For each task, the samples of each class as the address of one picture."""
    return [
        {label: data_uri(png(mosaic(list(images), columns))) for label, images in samples.items()}
        for samples in run.samples
    ]


def demo_picture(runs: Sequence[DemoRun], real: Mapping[Any, Images]) -> bytes:
    """A PNG: real images and the last samples of some memories, and the accuracy of all."""
    labels = runs[0].labels
    rows = {"real digits": real} | {
        run.name: run.samples[-1] for run in runs if run.name in IN_PICTURE
    }
    return plots.overview(
        {
            name: [mosaic(list(images[label][:4]), columns=2) for label in labels]
            for name, images in rows.items()
        },
        [str(label) for label in labels],
        _curves(runs),
        ("What each memory draws after the last task", "What it still recognises"),
    )


def _curves(runs: Sequence[DemoRun]) -> dict[str, list[float]]:
    return {run.name: run.curve for run in runs}


def demo(output: Path, picture: Path | None, seed: int, quiet: bool) -> None:
    """Teach every memory the digits, print a table, and write a page."""
    display, features = Display(quiet), load_digits()
    train, test = len(features.x_train), len(features.x_test)
    display.say(
        f"Ten handwritten digits, two per task, taught to {len(MEMORIES)} memories.",
        f"{train:,} training images, {test:,} test images; this takes about a minute.",
    )
    runs = []
    with one_thread():
        for number, memory in enumerate(MEMORIES, start=1):
            with display.working(f"{number} of {len(MEMORIES)}: {memory.name}", TASKS):
                runs.append(teach(memory, features, seed, display.step))
    title = "After the last task (parameters stored, and as the paper counts them)"
    header = ("memory", "accuracy", "forgetting", "stored", "paper count", "seconds")
    display.table(title, header, [table_row(run) for run in runs])
    page = demo_page(runs, samples=SAMPLES, train=train, test=test, seed=seed, settings=VAE)
    write_text(output, page)
    display.say(f"What each memory draws, to look at in a browser: {output.resolve()}")
    if picture is not None:
        write_bytes(picture, demo_picture(runs, real_images(features)))
        display.say(f"The same as a still picture: {picture.resolve()}")


def table_row(run: DemoRun) -> list[str]:
    """What the terminal shows of a run."""
    memory = run.record.memory
    return [
        run.name,
        percent(run.final),
        percent(run.record.metrics["forgetting"]),
        count(memory["stored"]),
        count(memory["paper"]),
        f"{run.seconds:.1f}",
    ]
