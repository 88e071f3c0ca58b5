"""The plots of a race: accuracy by samples per class, and mean ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from frugalvae.pages.plots import COLOURS, GREY, new_figure, style, svg
from frugalvae_lab.report.plot_parts import MARKERS, spread
from frugalvae_lab.report.ranks import groups

#: Ours and the best rivals; all others are grey.
LOOKS = dict(
    enumerate(zip((COLOURS[0], COLOURS[1], COLOURS[4], COLOURS[3]), MARKERS, strict=False))
)
ROW = 0.24  # inches between two names


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
    axes = figure.add_subplot()
    for name in sorted(behind, key=lambda name: name in podium):
        _draw_curve(axes, behind[name], podium.index(name) if name in podium else None)
    _name_curves(axes, {name: behind[name] for name in podium if name in behind}, len(samples))
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


def _draw_curve(axes: Any, curve: Any, place: int | None) -> None:
    x = np.arange(len(curve))
    if place is None:
        axes.plot(x, curve, color=GREY, linewidth=1, alpha=0.6, marker=".", markersize=4, zorder=2)
    else:
        colour, marker = LOOKS[place % len(LOOKS)]
        width = 2.6 if place == 0 else 1.6
        axes.plot(x, curve, color=colour, linewidth=width, marker=marker, markersize=5, zorder=4)


def _name_curves(axes: Any, curves: Mapping[str, Any], samples: int) -> None:
    """The name of each coloured curve at its end."""
    ends = {
        name: float(np.clip(curve[~np.isnan(curve)][-1], -12, 0))
        for name, curve in curves.items()
        if not np.isnan(curve).all()
    }
    heights = spread(list(ends.values()), gap=0.75)
    for place, (name, height) in enumerate(zip(ends, heights, strict=True)):
        look = {"color": LOOKS[place % len(LOOKS)][0], "fontweight": "bold" if not place else None}
        axes.text(samples - 0.82, height, name, va="center", fontsize=10, clip_on=False, **look)


@style()
def critical_differences(ranks: Mapping[str, float], apart: float, podium: Sequence[str]) -> str:
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
    height = ROW * (3.2 - bottom)
    figure = new_figure(9.6, height)
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
        left = place < half
        y = start - (place if left else len(names) - 1 - place)
        edge = low - 0.04 * span if left else high + 0.04 * span
        look = COLOURS[0] if name == podium[0] else GREY
        axes.plot([value, value, edge], [0, y, y], color=look, linewidth=1.0)
        axes.text(
            edge - 0.01 * span if left else edge + 0.01 * span,
            y,
            f"{name}  {value:.1f}" if left else f"{value:.1f}  {name}",
            ha="right" if left else "left",
            va="center",
            fontsize=10,
            fontweight="bold" if name == podium[0] else None,
        )
    return svg(figure, "Mean ranks of all methods with critical difference")
