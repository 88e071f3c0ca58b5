"""The paper's figures from records: accuracy by task, placement of Gaussians, layouts, frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from frugalvae.report.calibration import Bin
from frugalvae.report.plots import COLOURS, INK, MARKERS, STYLE, spread, svg

GREY = "#8a8a8a"


def courses(series: Mapping[str, Sequence[Sequence[float]]], title: str) -> str:
    """Percent over tasks: for each name the mean over seeds, and a band of one deviation.

    Parameters
    ----------
    series
        For each name, one course a seed.
    title
        What stands above.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.9), layout="constrained")
        axes = figure.add_subplot()
        stacks = {name: np.asarray(seeds, float) for name, seeds in series.items()}
        steps = max(stack.shape[1] for stack in stacks.values())
        lowest = min(float(stack.min()) for stack in stacks.values())
        bottom = 10 * np.floor(lowest / 10)
        ends = [float(stack[:, -1].mean()) for stack in stacks.values()]
        heights = spread(ends, gap=0.07 * (102 - bottom))
        for position, (name, stack) in enumerate(stacks.items()):
            colour = COLOURS[position % len(COLOURS)]
            mean, x = stack.mean(0), np.arange(1, stack.shape[1] + 1)
            marker = MARKERS[position % len(MARKERS)]
            axes.plot(x, mean, color=colour, marker=marker, linewidth=2, markersize=5)
            if len(stack) > 1:
                deviation = stack.std(0, ddof=1)
                axes.fill_between(
                    x, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
                )
            end = steps + 0.03 * steps
            axes.plot([x[-1], end], [mean[-1], heights[position]], color=colour, linewidth=1)
            axes.text(
                end + 0.01 * steps, heights[position], name, va="center", color=INK,
                parse_math=False,
            )  # fmt: skip
        axes.set_xlim(0.7, steps + 0.03 * steps)
        axes.set_ylim(bottom, 102)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
        if steps <= 12:
            axes.set_xticks(range(1, steps + 1))
        _plain(axes, "tasks learned", "mean accuracy on tasks so far, %")
        axes.grid(axis="y", color=INK, alpha=0.15)
        axes.set_title(title, loc="left", color=INK, fontsize=12, parse_math=False)
        return svg(figure, f"Accuracy after each task on {title} for {', '.join(series)}")


def placement(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Gaussians of the first two tasks before and after the iteration, as unit circles."""
    with matplotlib.rc_context(STYLE):
        panels = [(n, when) for n in range(len(tasks[:2])) for when in ("start", "end")]
        figure = Figure(figsize=(7.6, 3.9 * len(panels) / 2), layout="constrained")
        for position, (number, when) in enumerate(panels, start=1):
            axes = figure.add_subplot(len(panels) // 2, 2, position)
            old = np.asarray(tasks[number]["old"], float).reshape(-1, 2)
            new = np.asarray(tasks[number][when], float)[:, :2]
            _circles(axes, old, [GREY] * len(old))
            _circles(axes, new, [COLOURS[n % len(COLOURS)] for n in range(len(new))])
            axes.set_aspect("equal", adjustable="datalim")
            axes.autoscale_view()
            _plain(axes, "", "")
            words = "where the encoder puts them" if when == "start" else "after the iteration"
            axes.set_title(f"task {number + 1}: {words}", loc="left", color=INK, fontsize=11)
        return svg(figure, "Class Gaussians before and after the fixed-point iteration")


def layouts(tasks: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Draws from the Gaussians of all classes so far, one panel a task, coloured by task."""
    with matplotlib.rc_context(STYLE):
        rows = -(-len(tasks) // 3)
        figure = Figure(figsize=(8.4, 2.8 * rows), layout="constrained")
        for number, classes in enumerate(tasks, start=1):
            axes = figure.add_subplot(rows, 3, number)
            for task in sorted({entry["task"] for entry in classes}):
                points = np.concatenate([e["points"] for e in classes if e["task"] == task])
                colour = COLOURS[(task - min(e["task"] for e in classes)) % len(COLOURS)]
                axes.plot(*points.T, ".", color=colour, markersize=4, markeredgewidth=0)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color=INK, alpha=0.3)
            axes.set_title(f"after task {number}", loc="left", color=INK, fontsize=11)
        return svg(figure, "Draws from the class Gaussians after each task, laid out by t-SNE")


def frontier(
    points: Sequence[tuple[str, float, float, float | None]],
    best: Sequence[int],
    title: str,
    seconds: Sequence[float] = (),
) -> str:
    """Accuracy over numbers stored; the larger a point, the longer it took to learn.

    Parameters
    ----------
    points
        Name, numbers stored, accuracy in percent and its deviation.
    best
        Which of them no other beats with fewer numbers, from few numbers to many.
    title
        What stands above.
    seconds
        What learning all tasks took, for each point.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 4.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_xscale("log")
        sizes = [_size(time) for time in seconds] or [6.0] * len(points)
        for position, (_, x, y, deviation) in enumerate(points):
            colour, layer = (COLOURS[0], 3) if position in best else (GREY, 2)
            axes.errorbar(
                x,
                y,
                yerr=deviation,
                fmt="o",
                color=colour,
                markersize=sizes[position],
                elinewidth=1,
                zorder=layer,
            )
        if seconds:
            _explain_sizes(axes)
        line = np.array([points[position][1:3] for position in best])
        axes.step(*line.T, where="post", color=COLOURS[0], linewidth=1.5, alpha=0.6)
        _name_points(axes, points, best)
        wide = max(point[1] for point in points) > 100 * min(point[1] for point in points)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if wide else (1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: in_words(x)))
        axes.xaxis.set_minor_locator(NullLocator())
        _plain(axes, "numbers stored, head included (logarithmic)", "final average accuracy, %")
        axes.grid(color=INK, alpha=0.12)
        axes.set_title(title, loc="left", color=INK, fontsize=12, parse_math=False)
        return svg(figure, f"Accuracy against numbers stored on {title}")


def _size(seconds: float) -> float:
    """How large a point is: twice the diameter for twenty times as long."""
    return float(3.0 * max(seconds, 1.0) ** 0.25)


def _explain_sizes(axes: Any) -> None:
    """A legend of points that took a second, ten, and so on."""
    for seconds, text in ((1, "1 s to learn"), (10, "10 s"), (100, "100 s"), (1000, "1,000 s")):
        axes.plot([], [], "o", color=GREY, markersize=_size(seconds), label=text)
    axes.legend(loc="lower right", frameon=False, fontsize=8, labelspacing=0.9)


def reliability(bins: Sequence[Bin], accuracy: float) -> str:
    """Accuracy over probability, and below it how many answers have that probability.

    Parameters
    ----------
    bins
        Answers by their probability.
    accuracy
        Of all answers.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 5.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
        width = [part.high - part.low for part in bins]
        middle = [(part.high + part.low) / 2 for part in bins]
        above.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.6)
        above.text(0.03, 0.1, "as sure as right", rotation=43, color=INK, fontsize=9, alpha=0.8)
        above.bar(
            middle, [part.accuracy for part in bins], width, color=COLOURS[2], alpha=0.55,
            edgecolor=COLOURS[0], linewidth=1,
        )  # fmt: skip
        above.plot(
            [part.confidence for part in bins], [part.accuracy for part in bins], "o",
            color=COLOURS[0], markersize=5, clip_on=False, zorder=3,
        )  # fmt: skip
        below.bar(
            middle, [part.count for part in bins], width, color=GREY, alpha=0.6,
            edgecolor=GREY, linewidth=1,
        )  # fmt: skip
        above.set(xlim=(0, 1), ylim=(0, 1))
        ticks = np.linspace(0, 1, 6)
        above.set_yticks(ticks, [f"{share:.0%}" for share in ticks])
        below.set_xticks(ticks, [f"{share:.0%}" for share in ticks])
        below.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        _plain(above, "", "of these are right")
        _plain(below, "probability of the answer", "images")
        above.grid(axis="y", color=INK, alpha=0.12)
        return svg(figure, f"Reliability diagram: accuracy by probability; {accuracy:.1%} in all")


def in_words(number: float) -> str:
    """A round number on an axis.

    >>> in_words(3e6), in_words(500), in_words(1e5)
    ('3 M', '500', '100 k')
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def _name_points(
    axes: Any, points: Sequence[tuple[str, float, float, float | None]], best: Sequence[int]
) -> None:
    """Names beside points as far as there is room, those on the frontier first."""
    x = np.log10([point[1] for point in points])
    y = np.array([point[2] for point in points])
    margin = 0.05 * max(float(np.ptp(x)), 0.5)
    left, right = x.min() - margin, x.max() + margin
    height = max(float(np.ptp(y)), 5)
    low, high = y.min() - 0.1 * height, y.max() + 0.08 * height
    axes.set(xlim=(10**left, 10 ** (right + margin)), ylim=(low, high))
    shape = np.array([(right - left) / 8.0, (high - low) / 4.0])  # data units of an inch
    taken: list[NDArray[np.float64]] = []  # boxes: left, bottom, right, top in inches
    spots = np.stack([x, y], 1) / shape
    marks = [np.concatenate([spot - 0.06, spot + 0.06]) for spot in spots]
    others = [position for position in np.argsort(-y) if position not in best]
    for position in [*best, *others]:
        name, spot = points[position][0], spots[position]
        size = np.array([0.078 * len(name), 0.17])
        right_of, below = [0.1, -0.085], [0.08, -0.26]  # the line leaves to the right
        for towards, shift in (
            ("left", below if position in best[:-1] else right_of),
            ("right", [-0.1, -0.085]),
            ("left", [0.03, 0.09]),
            ("left", below),
            ("right", [-0.03, 0.09]),
            ("right", [-0.03, -0.26]),
        ):
            corner = spot + shift - [size[0] if towards == "right" else 0, 0]
            box = np.concatenate([corner, corner + size])
            inside = (box[:2] > [left, low] / shape).all() and (
                box[2:] < [right + margin, high] / shape
            ).all()
            blocked = [mark for n, mark in enumerate(marks) if n != position] + taken
            if inside and not any(_overlap(box, other) for other in blocked):
                taken.append(box)
                at = np.where([towards == "left", False], corner, corner + size * [1, 0.5]) * shape
                axes.text(
                    10 ** at[0], at[1], name, ha=towards, va="center", color=INK, fontsize=9,
                    parse_math=False,
                )  # fmt: skip
                break


def _overlap(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def _circles(axes: Any, centres: NDArray[np.float64], colours: Sequence[str]) -> None:
    for position, ((x, y), colour) in enumerate(zip(centres, colours, strict=True)):
        axes.add_patch(Circle((x, y), 1, facecolor=colour, edgecolor=colour, alpha=0.25))
        marker = MARKERS[(position + position // len(COLOURS)) % len(MARKERS)]
        axes.plot(x, y, marker, color=colour, markersize=4)


def _plain(axes: Any, x_label: str, y_label: str) -> None:
    """Axes in the colour of the text around."""
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.spines[:].set_color(INK)
    axes.tick_params(which="both", color=INK, labelcolor=INK)
