"""Each plot of our pages, and what they share. The same input always gives the same output."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Circle
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from frugalvae.pages.plots import COLOURS, GREY, new_figure, percent_ticks, style, svg
from frugalvae_lab.report.frontier import Point
from frugalvae_lab.report.race import groups

MARKERS = "oXsDv^P*"
#: Ours and the best rivals in a race; all others are grey.
PODIUM = tuple(zip((COLOURS[0], COLOURS[1], COLOURS[4], COLOURS[3]), MARKERS, strict=False))
ROW = 0.24  # inches between two names of ranks

# --------------------------------------------------------------------------- images


def mosaic(images: Sequence[ArrayLike], columns: int, gap: int = 1) -> NDArray[np.float64]:
    """Images of one size side by side, ``columns`` per row, with zeros between them.

    >>> mosaic([[[1.0]], [[0.5]], [[0.25]]], columns=2)
    array([[1.  , 0.  , 0.5 ],
           [0.  , 0.  , 0.  ],
           [0.25, 0.  , 0.  ]])
    """
    stack = np.clip(np.asarray(images, float), 0, 1)  # (n, height, width)
    rows = -(-len(stack) // columns)
    padded = np.pad(stack, ((0, rows * columns - len(stack)), (0, gap), (0, gap)))
    height, width = padded.shape[1:]
    grid = padded.reshape(rows, columns, height, width).swapaxes(1, 2)
    whole = grid.reshape(rows * height, columns * width)
    return whole[: rows * height - gap, : columns * width - gap]


def png(grey: ArrayLike) -> bytes:
    """An image of values from 0 (white paper) to 1 (black ink)."""
    levels = np.rint(255 * (1 - np.clip(np.asarray(grey, float), 0, 1))).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights apart, as little as makes neighbours differ by ``gap``.

    >>> spread([0.5, 0.5, 0.9], gap=0.1)
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    blocks: list[tuple[float, int]] = []  # centre and size of each group of labels, from below
    for height in np.asarray(heights, float)[order]:
        centre, size = float(height), 1
        while blocks and centre - blocks[-1][0] < gap * (size + blocks[-1][1]) / 2:
            below, number = blocks.pop()
            centre = (centre * size + below * number) / (size + number)
            size += number
        blocks.append((centre, size))
    moved = [c + gap * (i - (n - 1) / 2) for c, n in blocks for i in range(n)]
    result = np.empty(len(moved))
    result[order] = moved
    return [round(float(height), 9) for height in result]


# --------------------------------------------------------------------------- figures of the paper


@style()
def accuracy_by_task(
    series: Mapping[str, ArrayLike], title: str = "", *, bottom: float | None = None
) -> str:
    """Mean accuracy on all tasks so far, after each task; the name at the end of each line.

    Parameters
    ----------
    series
        For each name, shares of shape (tasks,) or (seeds, tasks). The mean over seeds is a line,
        one standard deviation a band.
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
    _draw_lines(axes, series, bottom)
    axes.set_title(title)
    place = f" on {title}" if title else ""
    return svg(figure, f"Accuracy after each task{place}: {', '.join(series)}")


def _draw_lines(axes: Any, series: Mapping[str, ArrayLike], bottom: float) -> None:
    stacks = {name: np.atleast_2d(np.asarray(shares, float)) for name, shares in series.items()}
    steps = max(stack.shape[1] for stack in stacks.values())
    ends = [float(stack[:, -1].mean()) for stack in stacks.values()]
    heights = spread(ends, gap=0.065 * (1 - bottom))
    right = steps + 0.06 * max(steps, 3)  # where names begin
    for position, (name, stack) in enumerate(stacks.items()):
        look = {"color": COLOURS[position % len(COLOURS)]}
        mean, x = stack.mean(0), np.arange(1, stack.shape[1] + 1)
        marker = MARKERS[position % len(MARKERS)]
        axes.plot(x, mean, marker=marker, linewidth=2, markersize=5, clip_on=False, **look)
        if len(stack) > 1:
            std = stack.std(0, ddof=1)
            axes.fill_between(x, mean - std, mean + std, alpha=0.2, linewidth=0, **look)
        ends_at = [x[-1] + 0.012 * steps, right]
        axes.plot(ends_at, [mean[-1], heights[position]], linewidth=1, clip_on=False, **look)
        axes.text(right + 0.01 * steps, heights[position], name, va="center")
    label = "mean accuracy on tasks so far"
    axes.set(xlim=(0.9, right), ylim=(bottom, 1.02), xlabel="tasks learned", ylabel=label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if steps <= 12:
        axes.set_xticks(range(1, steps + 1))
    percent_ticks(axes.yaxis, bottom)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(1, steps)
    axes.tick_params(left=False)


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
    axes = halves[0].add_subplot(anchor="NE")
    whole = mosaic([mosaic(row, len(columns), gap=4) for row in images.values()], 1, gap=4)
    fine = np.kron(1 - whole, np.ones((8, 8)))  # so that scaling keeps pixels square
    axes.imshow(fine, cmap="gray", vmin=0, vmax=1, extent=(0, len(columns), len(images), 0))
    axes.set_aspect(whole.shape[0] / len(images) / (whole.shape[1] / len(columns)))
    axes.set_yticks(np.arange(len(images)) + 0.5, list(images))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    _draw_lines(halves[1].add_subplot(), series, 0.0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


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


# --------------------------------------------------------------------------- accuracy and memory


@style()
def frontier(
    points: Sequence[Point],
    title: str,
    stored: str = "parameters stored, head included (logarithmic)",
) -> str:
    """Accuracy over what is stored; larger points took longer to learn.

    Those that none beats with as little stored are named.

    Parameters
    ----------
    points
        Methods, ordered by what they store.
    title, stored
        The title above the plot, and the label of the x axis.
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
    best = [point for point in points if point.best]
    line = np.array([(point.stored, point.accuracy) for point in best])
    axes.step(*line.T, where="post", color=COLOURS[0], linewidth=1.5, alpha=0.6)
    for point in best:  # the line leaves to the right
        look: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 9}
        look |= {"xytext": (-3, 3), "textcoords": "offset points"}
        axes.annotate(point.name, (point.stored, point.accuracy), **look)
    axes.margins(x=0.12, y=0.08)
    wide = points[-1].stored > 100 * points[0].stored
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(EngFormatter("B" if points[0].counted == "bytes" else ""))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel=stored, ylabel="final average accuracy, %", title=title)
    axes.grid()
    return svg(figure, f"Accuracy against what is stored on {title}")


def _size(seconds: float) -> float:
    """The diameter of a point: twice as large for sixteen times as long."""
    return float(3.0 * max(seconds, 1.0) ** 0.25)


# --------------------------------------------------------------------------- races


@style()
def shots(
    curves: Mapping[str, Sequence[float | None]],
    samples: Sequence[str],
    podium: Sequence[str],
    title: str,
) -> str:
    """Points behind the best of all, by samples per class; below, how accurate the best is.

    Parameters
    ----------
    curves
        For each method, its accuracy in percent at each number of samples.
    samples
        These numbers.
    podium
        The methods that are drawn in colour; the first one is ours.
    title
        The title above the plot.
    """
    table = np.array([[np.nan if v is None else v for v in row] for row in curves.values()])
    known = ~np.isnan(table).all(axis=0)
    best = np.where(known, np.max(np.nan_to_num(table, nan=-np.inf), axis=0), np.nan)
    behind = dict(zip(curves, table - best, strict=True))
    figure = new_figure(7.2, 4.6)
    axes, x = figure.add_subplot(), np.arange(len(samples))
    look: dict[str, Any] = {"color": GREY, "marker": ".", "markersize": 4, "linewidth": 1}
    for name in [name for name in behind if name not in podium]:
        axes.plot(x, behind[name], alpha=0.6, zorder=2, **look)
    ends = {}
    for place, name in enumerate(name for name in podium if name in behind):
        colour, marker = PODIUM[place % len(PODIUM)]
        look = {"color": colour, "marker": marker, "markersize": 5}
        axes.plot(x, behind[name], linewidth=1.6 if place else 2.6, zorder=4, **look)
        if (there := behind[name][~np.isnan(behind[name])]).size:
            ends[name] = float(np.clip(there[-1], -12, 0))
    for name, height in zip(ends, spread(list(ends.values()), gap=0.75), strict=True):
        place = podium.index(name)
        look = {"color": PODIUM[place % len(PODIUM)][0], "fontsize": 10, "va": "center"}
        weight = None if place else "bold"
        axes.text(len(samples) - 0.82, height, name, clip_on=False, fontweight=weight, **look)
    labels = [
        f"{count}\n{share:.1f} %" if share == share else count
        for count, share in zip(samples, best, strict=True)
    ]
    axes.set_xticks(range(len(samples)), labels)
    axes.set(
        ylim=(-12, 0.6),
        xlim=(-0.2, len(samples) - 0.9),
        xlabel="samples per class, and the best accuracy there",
        ylabel="points behind the best",
        title=title,
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)
    return svg(figure, f"Accuracy by samples per class on {title}")


@style()
def ranks(ranks: Mapping[str, float], apart: float, podium: Sequence[str]) -> str:
    """Mean ranks on a line, best to the left; bars join what chance could have made.

    Parameters
    ----------
    ranks
        Mean rank of each method, best first.
    apart
        The critical difference.
    podium
        The first of these is ours, and drawn in colour.
    """
    names, values = list(ranks), list(ranks.values())
    half = (len(names) + 1) // 2
    joined = groups(values, apart)
    start = -1.4 - 0.6 * len(joined)  # the height of the first name; one unit is one name
    bottom = start - half + 0.4
    figure = new_figure(9.6, ROW * (3.2 - bottom))
    axes = figure.add_subplot()
    low, high = 1.0, float(max(2, np.ceil(values[-1])))
    span = high - low
    axes.set(xlim=(low - 0.42 * span, high + 0.42 * span), ylim=(bottom, 3.2))
    axes.axis("off")
    axes.plot([low, high], [0, 0], color=GREY, linewidth=1.2)
    for tick in np.arange(low, high + 0.5):
        axes.plot([tick, tick], [0, 0.35], color=GREY, linewidth=1.2)
        axes.text(tick, 0.5, f"{tick:.0f}", ha="center", va="bottom", fontsize=9)
    axes.plot([low, low + apart], [2.1, 2.1], color=GREY, linewidth=2.2)
    axes.text(low + apart / 2, 2.3, f"critical difference {apart:.1f}", ha="center", fontsize=9)
    for number, (first, last) in enumerate(joined):
        y = -0.7 - 0.6 * number
        reach = [values[first] - 0.01 * span, values[last] + 0.01 * span]
        axes.plot(reach, [y, y], color=COLOURS[0], alpha=0.45, linewidth=4, solid_capstyle="round")
    for place, (name, value) in enumerate(ranks.items()):
        left, ours = place < half, name == podium[0]
        y = start - (place if left else len(names) - 1 - place)
        side = -1 if left else 1
        edge = (low if left else high) + side * 0.04 * span
        axes.plot([value, value, edge], [0, y, y], color=COLOURS[0] if ours else GREY, linewidth=1)
        axes.text(
            edge + side * 0.01 * span,
            y,
            f"{name}  {value:.1f}" if left else f"{value:.1f}  {name}",
            ha="right" if left else "left",
            va="center",
            fontsize=10,
            fontweight="bold" if ours else None,
        )
    return svg(figure, "Mean ranks of all methods with critical difference")
