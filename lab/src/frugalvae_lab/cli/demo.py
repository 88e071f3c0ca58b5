"""``frugalvae-lab demo``: ten digits in five tasks, to see what memories keep and forget."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import add, check_output
from frugalvae.console import Display
from frugalvae.files import write_bytes, write_text
from frugalvae.formatting import count, percent

if TYPE_CHECKING:
    from frugalvae_lab.bench.demo_runs import DemoRun

TITLE = "After the last task (parameters stored, and as the paper counts them)"
HEADER = ("memory", "accuracy", "forgetting", "stored", "paper count", "seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Teach ten handwritten digits, two per task, to several memories. A table and a page show "
        "what each of them remembers. This takes about a minute."
    )
    about = "the page to write (default: demo.html)"
    add(parser, "--output", default=Path("demo.html"), help=about)
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="also write a still picture (PNG)"
    )
    about = "seed of everything random, also of the order of the digits (default: 0)"
    add(parser, "--seed", help=about)
    add(parser, "--quiet")


def run(options: argparse.Namespace) -> None:
    """Teach every memory the digits, print a table, and write a page."""
    from frugalvae_lab.bench.demo_runs import (
        MEMORIES,
        SAMPLES,
        TASKS,
        VAE,
        one_thread,
        real_images,
        teach,
    )
    from frugalvae_lab.images.dataset import load_digits
    from frugalvae_lab.report.demo_page import demo_page, demo_picture

    output, picture, seed = options.output, options.picture, options.seed
    check_output(output, ".html", ".htm")
    if picture is not None:
        check_output(picture, ".png")
    display, features = Display(options.quiet), load_digits()
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
    display.table(TITLE, HEADER, [table_row(run) for run in runs])
    page = demo_page(runs, samples=SAMPLES, train=train, test=test, seed=seed, settings=VAE)
    write_text(output, page)
    display.say(f"What each memory draws, to look at in a browser: {output.resolve()}")
    if picture is not None:
        write_bytes(picture, demo_picture(runs, real_images(features)))
        display.say(f"The same as a still picture: {picture.resolve()}")


def table_row(run: DemoRun) -> list[str]:
    """What the terminal shows of a run, under :data:`HEADER`."""
    memory = run.record.memory
    return [
        run.name,
        percent(run.final),
        percent(run.record.metrics["forgetting"]),
        count(memory["stored"]),
        count(memory["paper"]),
        f"{run.seconds:.1f}",
    ]
