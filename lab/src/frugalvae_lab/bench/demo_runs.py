"""The runs of the demo: several memories learn ten handwritten digits in five tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.classifier import FrugalClassifier
from frugalvae.images.feature_file import Features
from frugalvae.parts import make_memory
from frugalvae_lab.bench.metrics import accuracy_by_task
from frugalvae_lab.bench.stream_run import Record, run_stream

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


@dataclass(frozen=True)
class DemoMemory:
    """A memory of the demo.

    Attributes
    ----------
    name, description
        How the page calls it, and what it does.
    memory, changes
        The name of the memory, and what differs from :data:`VAE`; ``None`` for a memory that
        is not a VAE and has no settings.
    """

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
        return sum(sum(task.values()) for task in self.record.seconds)

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

    told = {"memory": memory.memory, **settings}
    record = run_stream(classifier, features, TASKS, seed, sample, told)
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
