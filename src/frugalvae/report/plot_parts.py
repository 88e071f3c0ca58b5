"""What all plots share: style, colours, axes, labels that do not overlap, and SVG or PNG output.

The same input always gives the same output.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from xml.sax.saxutils import quoteattr

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from PIL import Image

#: Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#009e73", "#8a8a8a", "#cc79a7", "#b5a800")
MARKERS = "oXsDv^P*"
INK = "#1d2329"  # becomes the colour of the text around an SVG
GREY = "#8a8a8a"

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "frugalvae",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def style() -> Iterator[None]:
    """Plot in our style; also a decorator."""
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; sizes in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def draw_lines(
    axes: Any, series: Mapping[str, ArrayLike], y_label: str, *, bottom: float = 0.0
) -> None:
    """Shares by task: the mean over seeds as a line, one standard deviation as a band.

    Each name stands at the end of its line.

    Parameters
    ----------
    series
        For each name, shares of shape (tasks,) or (seeds, tasks).
    bottom
        Where the y axis begins.
    """
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
    axes.set(xlim=(0.9, right), ylim=(bottom, 1.02), xlabel="tasks learned", ylabel=y_label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if steps <= 12:
        axes.set_xticks(range(1, steps + 1))
    percent_ticks(axes.yaxis, bottom)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(1, steps)
    axes.tick_params(left=False)


def percent_ticks(axis: Any, bottom: float = 0.0) -> None:
    """Ticks at round percentages from ``bottom`` to 100%."""
    step = 0.2 if bottom < 0.4 else 0.1
    ticks = np.arange(round(1 / step) + 1) * step
    ticks = ticks[ticks >= bottom - 1e-9]
    axis.set_ticks(ticks, [f"{share:.0%}" for share in ticks])


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


def svg(figure: Figure, title: str) -> str:
    """The figure as an SVG element that takes the width and text colour of its surroundings."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r"#([\w-]+)", text))
    text = re.sub(r' id="([\w-]+)"', lambda found: found[0] * (found[1] in used), text)
    text = re.sub(r'<svg width="[^"]*" height="[^"]*"', "<svg", text, count=1)
    label = f'<svg role="img" aria-label={quoteattr(title)}'
    return text.replace("<svg", label, 1).replace(INK, "currentColor")


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
