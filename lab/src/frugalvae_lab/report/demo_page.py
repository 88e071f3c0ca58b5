"""The page and the picture of the demo: what each memory draws and still recognises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frugalvae.pages.plots import COLOURS
from frugalvae.pages.render import data_uri
from frugalvae_lab.bench.demo_runs import DemoRun, Images
from frugalvae_lab.report import plots
from frugalvae_lab.report.plot_parts import mosaic, png
from frugalvae_lab.report.render import render

IN_PICTURE = ("moments", "VAE-FO", "no null space", "frozen decoder", "diagonal Gaussian")


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
