"""Each plot of our pages: accuracy by task, placement, layouts, frontier."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Circle
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from frugalvae.pages.plots import COLOURS, GREY, new_figure, style, svg
from frugalvae_lab.report.pareto import Point
from frugalvae_lab.report.plot_parts import MARKERS, draw_lines, mosaic

SO_FAR = "mean accuracy on tasks so far"
PLOT = np.array([7.2, 3.8])  # inches of the frontier's axes, nearly


@style()
def accuracy_by_task(
    series: Mapping[str, ArrayLike], title: str = "", *, bottom: float | None = None
) -> str:
    """Mean accuracy on all tasks so far, after each task.

    Parameters
    ----------
    series
        For each name, shares of shape (tasks,) or (seeds, tasks).
    title
        The title above the plot.
    bottom
        Where the y axis begins; by default, a round share below the smallest one.
    """
    figure = new_figure(6.4, 3.9)
    axes = figure.add_subplot()
    if bottom is None:
        lowest = min(float(np.min(shares)) for shares in series.values())
        bottom = float(np.floor(5 * lowest) / 5)
    draw_lines(axes, series, SO_FAR, bottom=bottom)
    axes.set_title(title)
    place = f" on {title}" if title else ""
    return svg(figure, f"Accuracy after each task{place}: {', '.join(series)}")


@style()
def overview(
    images: Mapping[str, Sequence[ArrayLike]],
    columns: Sequence[str],
    series: Mapping[str, ArrayLike],
    titles: tuple[str, str],
) -> bytes:
    """One PNG, 1200 pixels wide: rows of images to the left, accuracy by task to the right.

    Parameters
    ----------
    images
        For each row, one image of grey values per column, all of one size.
    columns
        The headings of the columns.
    series
        As for :func:`accuracy_by_task`.
    titles
        Of the left and of the right half.
    """
    figure = new_figure(12, 3.75)
    figure.set(dpi=100, facecolor="white")
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.45, 1])
    for half, title in zip(halves, titles, strict=True):
        half.suptitle(title, x=0.02, ha="left", fontweight="bold")
    _draw_rows(halves[0].add_subplot(anchor="NE"), images, columns)
    draw_lines(halves[1].add_subplot(), series, SO_FAR)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _draw_rows(
    axes: Any, images: Mapping[str, Sequence[ArrayLike]], columns: Sequence[str]
) -> None:
    whole = mosaic([mosaic(row, len(columns), gap=4) for row in images.values()], 1, gap=4)
    fine = np.kron(1 - whole, np.ones((8, 8)))  # so that scaling keeps pixels square
    axes.imshow(fine, cmap="gray", vmin=0, vmax=1, extent=(0, len(columns), len(images), 0))
    axes.set_aspect(whole.shape[0] / len(images) / (whole.shape[1] / len(columns)))
    axes.set_yticks(np.arange(len(images)) + 0.5, list(images))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


@style()
def placement(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Class Gaussians of the first two tasks before and after the iteration, as unit circles."""
    panels = [(n, when) for n in range(len(tasks[:2])) for when in ("start", "end")]
    figure = new_figure(7.6, 3.9 * len(panels) / 2)
    for position, (number, when) in enumerate(panels, start=1):
        axes = figure.add_subplot(len(panels) // 2, 2, position)
        old = np.asarray(tasks[number]["old"], float).reshape(-1, 2)
        new = np.asarray(tasks[number][when], float)[:, :2]
        _circles(axes, old, [GREY] * len(old))
        _circles(axes, new, [COLOURS[n % len(COLOURS)] for n in range(len(new))])
        axes.set_aspect("equal", adjustable="datalim")
        axes.autoscale_view()
        words = "where the encoder puts them" if when == "start" else "after the iteration"
        axes.set_title(f"task {number + 1}: {words}", fontsize=11)
    return svg(figure, "Class Gaussians before and after the fixed-point iteration")


def _circles(axes: Any, centres: NDArray[np.float64], colours: Sequence[str]) -> None:
    for position, ((x, y), colour) in enumerate(zip(centres, colours, strict=True)):
        axes.add_patch(Circle((x, y), 1, facecolor=colour, edgecolor=colour, alpha=0.25))
        marker = MARKERS[(position + position // len(COLOURS)) % len(MARKERS)]
        axes.plot(x, y, marker, color=colour, markersize=4)


@style()
def layouts(tasks: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Samples of the Gaussians of all classes so far: one panel per task, coloured by task."""
    rows = -(-len(tasks) // 3)
    figure = new_figure(8.4, 2.8 * rows)
    for number, classes in enumerate(tasks, start=1):
        axes = figure.add_subplot(rows, 3, number)
        first = min(entry["task"] for entry in classes)
        for task in sorted({entry["task"] for entry in classes}):
            points = np.concatenate([e["points"] for e in classes if e["task"] == task])
            colour = COLOURS[(task - first) % len(COLOURS)]
            axes.plot(*points.T, ".", color=colour, markersize=4, markeredgewidth=0)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, alpha=0.3)
        axes.set_title(f"after task {number}", fontsize=11)
    return svg(figure, "Samples of the class Gaussians after each task, laid out by t-SNE")


@style()
def frontier(
    points: Sequence[Point],
    title: str,
    stored: str = "parameters stored, head included (logarithmic)",
) -> str:
    """Accuracy over what is stored; larger points took longer to learn.

    Parameters
    ----------
    points
        Methods, ordered by what they store.
    title
        The title above the plot.
    stored
        The label of the x axis.
    """
    figure = new_figure(8.0, 4.6)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for point in points:
        axes.errorbar(
            point.stored, point.accuracy, yerr=point.entry.std, fmt="o",
            color=COLOURS[0] if point.best else GREY, markersize=_size(point.seconds),
            elinewidth=1, zorder=3 if point.best else 2,
        )  # fmt: skip
    for seconds, text in ((1, "1 s to learn"), (10, "10 s"), (100, "100 s"), (1000, "1,000 s")):
        axes.plot([], [], "o", color=GREY, markersize=_size(seconds), label=text)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=8)
    line = np.array([(point.stored, point.accuracy) for point in points if point.best])
    axes.step(*line.T, where="post", color=COLOURS[0], linewidth=1.5, alpha=0.6)
    _name_points(axes, points)
    wide = points[-1].stored > 100 * points[0].stored
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(EngFormatter("B" if points[0].counted == "bytes" else ""))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(
        xlabel=stored,
        ylabel="final average accuracy, %",
        title=title,
    )
    axes.grid()
    return svg(figure, f"Accuracy against what is stored on {title}")


def _size(seconds: float) -> float:
    """The diameter of a point: twice as large for sixteen times as long."""
    return float(3.0 * max(seconds, 1.0) ** 0.25)


def _name_points(axes: Any, points: Sequence[Point]) -> None:
    """Names beside points as far as there is room, those on the frontier first."""
    spots = np.array([(np.log10(point.stored), point.accuracy) for point in points])
    span = np.maximum(np.ptp(spots, axis=0), [0.5, 5])
    (left, low), (right, high) = spots.min(0) - 0.08 * span, spots.max(0) + [0.12, 0.08] * span
    axes.set(xlim=(10**left, 10**right), ylim=(low, high))
    spots = (spots - [left, low]) / [right - left, high - low] * PLOT  # in inches
    radii = np.array([_size(point.seconds) / 144 for point in points])
    marks = np.concatenate([spots - radii[:, None], spots + radii[:, None]], axis=1)
    boxes = list(marks)  # what is taken: left, bottom, right, top
    best = [position for position, point in enumerate(points) if point.best]
    others = [position for position in np.argsort(-spots[:, 1]) if not points[position].best]
    for position in [*best, *others]:
        (x, y), radius = spots[position], radii[position]
        width, height = 0.072 * len(points[position].name), 0.16
        beside, above, below = -height / 2, radius + 0.01, -radius - 0.01 - height
        places = [
            ("left", radius + 0.04, beside),
            ("right", -radius - 0.04, beside),
            ("left", 0.03, above),
            ("left", 0.06, below),
            ("right", -0.03, above),
            ("right", -0.03, below),
        ]
        if position in best[:-1]:  # the line leaves to the right
            places[0] = places[3]
        for side, shift, rise in places:
            start = x + shift - (width if side == "right" else 0)
            box = np.array([start, y + rise, start + width, y + rise + height])
            taken = np.array(boxes[:position] + boxes[position + 1 :])
            overlap = (box[:2] < taken[:, 2:]).all(1) & (taken[:, :2] < box[2:]).all(1)
            if (box[:2] > 0).all() and (box[2:] < PLOT).all() and not overlap.any():
                boxes.append(box)
                at = np.array([x + shift, y + rise + height / 2]) / PLOT
                look = {"ha": side, "va": "center", "fontsize": 9, "transform": axes.transAxes}
                axes.text(*at, points[position].name, **look)
                break
