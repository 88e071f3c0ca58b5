"""An evaluation in one sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from frugalvae.formatting import percent, plural
from frugalvae.report.evaluation import Evaluation

CLOSE = 0.05  # mean probability and accuracy count as equal up to this difference


def shown_names(classes: Sequence[str]) -> list[str]:
    """Class names with spaces for underscores, unless two names would become equal.

    >>> shown_names(["Horned_Lark", "Cardinal"]), shown_names(["a_b", "a b"])
    (['Horned Lark', 'Cardinal'], ['a_b', 'a b'])
    """
    written = [name.replace("_", " ").strip() or name for name in classes]
    return written if len(set(written)) == len(classes) else list(classes)


def summary(evaluation: Evaluation, names: Sequence[str]) -> str:
    """The most frequent mistake, and whether probabilities match the accuracy."""
    return f"{_mistakes(evaluation, names)} {_calibration(evaluation)}"


def _mistakes(evaluation: Evaluation, names: Sequence[str]) -> str:
    wrong = len(evaluation.wrong)
    if not wrong:
        return f"Every {_sample(evaluation)} is recognised."
    first = evaluation.pairs[0]
    if first.count == 1:
        return f"{wrong:,} {'is' if wrong == 1 else 'are'} wrong; no mistake is made twice."
    pair = f"{names[first.truth]} is mistaken for {names[first.taken_for]}"
    return f"{wrong:,} are wrong; most often, {pair} ({first.count:,} of {first.total:,})."


def _calibration(evaluation: Evaluation) -> str:
    """Whether probabilities are too high or too low, as far as so many samples can tell."""
    mean, (low, high) = float(evaluation.confidence.mean()), evaluation.interval
    stated = f"{percent(mean)} on average"
    if abs(mean - evaluation.accuracy) <= CLOSE:
        error = evaluation.calibration_error
        if error <= 2 * CLOSE:
            return f"Its probabilities match its accuracy: {stated}."
        return (
            f"Its probabilities match its accuracy on average, {percent(mean)}, but not one by "
            f"one: the calibration error is {percent(error)}."
        )
    if mean > high:
        return f"It is overconfident: its probabilities are {stated}."
    if mean < low:
        return f"It is underconfident: its probabilities are {stated}."
    few = plural(len(evaluation.truth), _sample(evaluation))
    wrong = "high" if mean > evaluation.accuracy else "low"
    return f"Its probabilities are {stated}; {few} are too few to tell whether that is too {wrong}."


def _sample(evaluation: Evaluation) -> str:
    return "image" if evaluation.of_images else "sample"
