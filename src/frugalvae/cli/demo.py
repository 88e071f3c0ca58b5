"""``frugalvae demo``: ten digits in five tasks, so that memory and forgetting can be seen."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add_output, add_quiet, add_seed
from frugalvae.files import check_place, write_bytes, write_text
from frugalvae.formatting import count, percent, seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.bench.run import Record
    from frugalvae.classifier import FrugalClassifier
    from frugalvae.console import Display
    from frugalvae.images.feature_file import Features
    from frugalvae.report.lessons import Lesson

#: What all VAEs of the demo have in common. Class-wise normalisation is off: the
#: normaliser alone would remember each digit's mean picture, and one could not see
#: what the decoder remembers. No noise is added, so that its drawings can be read.
VAE: dict[str, Any] = {
    "hidden": 128,
    "latent": 64,
    "epochs": 100,
    "batch_size": 64,
    "max_steps": 1000,
    "learning_rate": 1e-3,
    "later_learning_rate": 2e-3,  # in few free directions one must go further
    "classwise": False,
    "prior": "fpi",
    "inputs": "prior-mean",
    "relative": True,
    "noise": 0.0,
}

TASKS = 5
SAMPLES = 6  # drawings of each digit
SIDE = 8  # pixels


@dataclass(frozen=True)
class Row:
    """A memory of the demo.

    Attributes
    ----------
    name, what
        What it is called, and what it does.
    memory, changes
        How it is made; ``None`` for a memory that is no VAE and has no settings.
    """

    name: str
    what: str
    memory: str
    changes: Mapping[str, Any] | None = None


ROWS = (
    Row(
        "VAE-FO",
        "One VAE for all digits. A new task may change the decoder only along directions that "
        "no earlier digit uses: their null space.",
        "vae-fo",
        {},
    ),
    Row(
        "no null space",
        "The same VAE, but a new task may change all of the decoder.",
        "vae-fo",
        {"decoder": "free"},
    ),
    Row(
        "VAE-FOD",
        "As VAE-FO, and every task has its own last layer and biases.",
        "vae-fod",
        {},
    ),
    Row(
        "frozen decoder",
        "The same VAE, but the decoder stays as task 1 left it: it can draw nothing but the "
        "first two digits.",
        "vae-fo",
        {"decoder": "frozen"},
    ),
    Row(
        "diagonal Gaussian",
        "No network: mean and variance of every pixel, for each digit by itself.",
        "gaussian-diagonal",
    ),
    Row(
        "factors",
        "The default: mean of each digit, one covariance for all, and directions in which each "
        "digit varies more; classified by Bayes' rule, without any training.",
        "factors",
    ),
    Row(
        "store everything",
        "Keeps every training picture: these are real digits.",
        "store-all",
    ),
)
IN_PICTURE = ("factors", "VAE-FO", "no null space", "frozen decoder", "diagonal Gaussian")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Teach ten handwritten digits, two per task, to several memories. A table and a page show "
        "what each of them remembers. This takes about a minute."
    )
    add_output(parser, "the page to write", "demo.html")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="also write a still picture (PNG)"
    )
    add_seed(parser, "seed of everything random, also of the order of the digits (default: 0)")
    add_quiet(parser)


def run(options: argparse.Namespace) -> None:
    """Show the demo."""
    demo(options.output, seed=options.seed, quiet=options.quiet, picture=options.picture)


def demo(output: Path, *, seed: int = 0, quiet: bool = False, picture: Path | None = None) -> None:
    """Teach every memory the digits, print a table, and write a page about it.

    Parameters
    ----------
    output
        Where the page goes.
    seed
        Decides the order of the digits and everything random.
    quiet
        Print nothing.
    picture
        Where a still picture of the result goes (PNG), if one is wanted.
    """
    from frugalvae.console import Display
    from frugalvae.images.digits import load_digits
    from frugalvae.report.lessons import demo_page, demo_picture

    for path in filter(None, (output, picture)):
        check_place(path)
    display, features = Display(quiet), load_digits()
    train, test = len(features.x_train), len(features.x_test)
    display.say(f"Ten handwritten digits, two per task, taught to {len(ROWS)} memories.")
    display.say(
        f"{train:,} pictures to learn from, {test:,} to test on; this takes about a minute."
    )
    with one_thread():
        lessons = [
            teach(row, f"{number} of {len(ROWS)}: {row.name}", features, seed, display)
            for number, row in enumerate(ROWS, start=1)
        ]
    display.table(TITLE, HEADER, [table_row(lesson) for lesson in lessons])
    content = {"samples": SAMPLES, "train": train, "test": test, "seed": seed, "settings": VAE}
    write_text(output, demo_page(lessons, **content))
    display.say(f"What each memory draws, to look at in a browser: {output.resolve()}")
    if picture is not None:
        write_bytes(picture, demo_picture(lessons, IN_PICTURE, real_pictures(features)))
        display.say(f"The same as a still picture: {picture.resolve()}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Networks this small gain nothing from more threads, which wait for each other.

    On two busy cores, two threads made the demo more than five times slower.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def teach(row: Row, title: str, features: Features, seed: int, display: Display) -> Lesson:
    """Teach one memory all tasks, looking at what it draws after each."""
    from frugalvae.bench.run import run_stream
    from frugalvae.classifier import FrugalClassifier
    from frugalvae.memories import make_memory
    from frugalvae.report.lessons import Lesson

    settings = {} if row.changes is None else {**VAE, **row.changes}
    classifier = FrugalClassifier(make_memory(row.memory, **settings), random_state=seed)
    drawings: list[dict[Any, NDArray[np.float32]]] = []

    def after_task(classifier: FrugalClassifier, _record: Record) -> None:
        drawings.append(
            {
                label: classifier.sample(label, SAMPLES).reshape(SAMPLES, SIDE, SIDE)
                for label in classifier.classes_.tolist()
            }
        )
        display.step()

    with display.working(title, TASKS):
        record = run_stream(
            classifier, features, TASKS, seed, after_task, {"memory": row.memory, **settings}
        )
    return Lesson(row.name, row.what, record, drawings)


def real_pictures(features: Features) -> dict[Any, NDArray[np.float32]]:
    """The first training pictures of each digit."""
    return {
        label: features.x_train[features.y_train == label][:SAMPLES].reshape(-1, SIDE, SIDE)
        for label in features.classes.tolist()
    }


TITLE = "After the last task (parameters stored, and as the paper counts them)"
HEADER = ("memory", "accuracy", "forgetting", "stored", "paper count", "seconds")


def table_row(lesson: Lesson) -> list[str]:
    """What the terminal shows of a lesson, under :data:`HEADER`."""
    memory = lesson.record.memory
    return [
        lesson.name,
        percent(lesson.final),
        percent(lesson.record.metrics["forgetting"]),
        count(memory["stored"]),
        count(memory["paper"]),
        seconds(lesson.seconds),
    ]
