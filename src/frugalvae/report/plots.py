"""Figures as text or bytes that a page can hold: the same input gives the same output."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from PIL import Image

#: Okabe and Ito's colours: all kinds of colour vision tell them apart.
COLOURS = ("#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#009e73", "#8a8a8a", "#cc79a7", "#b5a800")
MARKERS = "oXsDv^P*"
INK = "#1d2329"

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "frugalvae",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def curves(series: Mapping[str, Sequence[float]], *, x_label: str, y_label: str) -> str:
    """Shares over time as an SVG, one line a name, which stands at the line's end.

    Axes and names take the colour of the text around the figure. Lines take
    :data:`COLOURS` in order.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.9), layout="constrained")
        draw_curves(figure.add_subplot(), series, x_label, y_label)
        title = f"Line plot: {y_label} by {x_label} for {', '.join(series)}"
        return svg(figure, title)


def draw_curves(
    axes: Any, series: Mapping[str, Sequence[float]], x_label: str, y_label: str
) -> None:
    """The lines of :func:`curves`, on axes of any figure."""
    steps = max(len(values) for values in series.values())
    heights = spread([values[-1] for values in series.values()], gap=0.065)
    for position, (name, values) in enumerate(series.items()):
        colour = COLOURS[position % len(COLOURS)]
        marker = MARKERS[position % len(MARKERS)]
        x = range(1, len(values) + 1)
        axes.plot(x, values, color=colour, marker=marker, linewidth=2, markersize=6, clip_on=False)
        name_x, name_y = steps + 0.28, heights[position]
        axes.plot([steps + 0.08, name_x - 0.05], [values[-1], name_y], color=colour, linewidth=1)
        axes.text(name_x, name_y, name, va="center", color=INK, parse_math=False)
    axes.set_xlim(0.9, steps + 0.28)
    axes.set_ylim(0, 1.02)
    axes.set_xticks(range(1, steps + 1))
    axes.set_yticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    axes.grid(axis="y", color=INK, alpha=0.15)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set(color=INK, bounds=(1, steps))
    axes.tick_params(color=INK, labelcolor=INK, left=False)


def overview(
    pictures: Mapping[str, Sequence[ArrayLike]],
    columns: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    titles: tuple[str, str],
    x_label: str,
    y_label: str,
) -> bytes:
    """One PNG, 1200 pixels wide: rows of pictures to the left, curves to the right.

    Parameters
    ----------
    pictures
        For each row, one picture of grey values for each column, all of one size.
    columns
        What stands above them.
    series
        As for :func:`curves`.
    titles
        Of the left and of the right half.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 3.75), dpi=100, layout="constrained", facecolor="white")
        halves: Any = figure.subfigures(1, 2, width_ratios=[1.45, 1])
        for half, title in zip(halves, titles, strict=True):
            half.suptitle(title, x=0.02, ha="left", color=INK, fontweight="bold")
        _draw_rows(halves[0].add_subplot(anchor="N"), pictures, columns)
        draw_curves(halves[1].add_subplot(), series, x_label, y_label)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _draw_rows(
    axes: Any, pictures: Mapping[str, Sequence[ArrayLike]], columns: Sequence[str]
) -> None:
    whole = mosaic([mosaic(row, len(columns), gap=4) for row in pictures.values()], 1, gap=4)
    fine = np.kron(1 - whole, np.ones((8, 8)))  # so that scaling keeps pixels square
    axes.imshow(fine, cmap="gray", vmin=0, vmax=1, extent=(0, len(columns), len(pictures), 0))
    axes.set_aspect(whole.shape[0] / len(pictures) / (whole.shape[1] / len(columns)))
    axes.set_yticks(np.arange(len(pictures)) + 0.5, list(pictures))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.tick_params(length=0, labelcolor=INK, top=False, labeltop=True, labelbottom=False)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.spines[:].set_visible(False)


def mosaic(images: Sequence[ArrayLike], columns: int, gap: int = 1) -> NDArray[np.float64]:
    """Pictures of one size side by side, ``columns`` in a row, zeros between them.

    >>> mosaic([[[1.0]], [[0.5]], [[0.25]]], columns=2)
    array([[1.  , 0.  , 0.5 ],
           [0.  , 0.  , 0.  ],
           [0.25, 0.  , 0.  ]])
    """
    stack = np.clip(np.asarray(images, float), 0, 1)  # (n, height, width)
    height, width = stack.shape[1] + gap, stack.shape[2] + gap
    rows = -(-len(stack) // columns)
    whole = np.zeros((rows * height, columns * width))
    for position, image in enumerate(stack):
        row, column = divmod(position, columns)
        top, left = row * height, column * width
        whole[top : top + height - gap, left : left + width - gap] = image
    return whole[:-gap, :-gap] if gap else whole


def png(grey: ArrayLike) -> bytes:
    """A picture of values from 0 (white paper) to 1 (black ink)."""
    levels = np.rint(255 * (1 - np.clip(np.asarray(grey, float), 0, 1))).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def svg(figure: Figure, title: str) -> str:
    """The figure as an SVG element that fits its surroundings in width and colour."""
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
    """The same heights, moved apart as little as makes neighbours differ by ``gap``.

    >>> spread([0.5, 0.5, 0.9], gap=0.1)
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    blocks: list[tuple[float, int]] = []  # centre and number of labels, from below
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
