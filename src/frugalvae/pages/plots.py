"""Plots for pages: one style, colours that all can tell apart, and SVG.

The same input always gives the same output.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from frugalvae.verbs.evaluate import CALIBRATION_BINS

#: Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#009e73", "#8a8a8a", "#cc79a7", "#b5a800")
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


def percent_ticks(axis: Any, bottom: float = 0.0) -> None:
    """Ticks at round percentages from ``bottom`` to 100%."""
    step = 0.2 if bottom < 0.4 else 0.1
    ticks = np.arange(round(1 / step) + 1) * step
    ticks = ticks[ticks >= bottom - 1e-9]
    axis.set_ticks(ticks, [f"{share:.0%}" for share in ticks])


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


@dataclass(frozen=True)
class Bin:
    """Predictions whose probability lies between two bounds, and how many are right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int = CALIBRATION_BINS
) -> list[Bin]:
    """Predictions by their probability, in bins of equal width; empty bins are left out.

    A probability on a bound belongs to the bin below it.

    >>> reliability_bins(np.array([0.3, 0.5, 0.9]), np.array([False, True, True]), bins=2)[0]
    Bin(low=0.0, high=0.5, count=2, confidence=0.4, accuracy=0.5)
    """
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = []
    for place in np.unique(places).tolist():
        inside = places == place
        means = float(confidence[inside].mean()), float(correct[inside].mean())
        found.append(Bin(place / bins, (place + 1) / bins, int(inside.sum()), *means))
    return found


@style()
def reliability(bins: Sequence[Bin], accuracy: float) -> str:
    """Accuracy by probability, and below it how many predictions have that probability.

    Parameters
    ----------
    bins
        Predictions by their probability.
    accuracy
        Of all predictions.
    """
    figure = new_figure(5.6, 5.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    middle = [(part.high + part.low) / 2 for part in bins]
    bars = {"width": [part.high - part.low for part in bins], "linewidth": 1}
    right = [part.accuracy for part in bins]
    above.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.6)
    above.text(0.03, 0.1, "perfectly calibrated", rotation=43, fontsize=9, alpha=0.8)
    above.bar(middle, right, color=COLOURS[2], alpha=0.55, edgecolor=COLOURS[0], **bars)
    confidence = [part.confidence for part in bins]
    above.plot(confidence, right, "o", color=COLOURS[0], markersize=5, clip_on=False, zorder=3)
    below.bar(middle, [part.count for part in bins], color=GREY, alpha=0.6, edgecolor=GREY, **bars)
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    percent_ticks(above.yaxis)
    percent_ticks(below.xaxis)
    below.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    below.set(xlabel="predicted probability", ylabel="predictions")
    above.grid(axis="y")
    return svg(figure, f"Reliability diagram: accuracy by probability; {accuracy:.1%} overall")
