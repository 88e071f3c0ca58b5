"""What several plots share: lines over tasks, labels that do not overlap, mosaics of images.

The same input always gives the same output.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from frugalvae.pages.plots import COLOURS, percent_ticks

MARKERS = "oXsDv^P*"


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
