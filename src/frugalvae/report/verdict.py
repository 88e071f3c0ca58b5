"""An evaluation in words."""

from __future__ import annotations

from collections.abc import Sequence

from frugalvae.formatting import percent
from frugalvae.report.evaluation import Evaluation, Pair

CLOSE = 0.05  # of mean probability and accuracy, where they count as the same


def shown_names(classes: Sequence[str]) -> list[str]:
    """Names of folders as people write them, unless two would look the same.

    >>> shown_names(["Horned_Lark", "Cardinal"]), shown_names(["a_b", "a b"])
    (['Horned Lark', 'Cardinal'], ['a_b', 'a b'])
    """
    written = [name.replace("_", " ").strip() or name for name in classes]
    return written if len(set(written)) == len(classes) else list(classes)


def verdict(evaluation: Evaluation, names: Sequence[str]) -> str:
    """What a person should know if they read one line."""
    return f"{_mistakes(evaluation, names)} {_honesty(evaluation)}"


def _mistakes(evaluation: Evaluation, names: Sequence[str]) -> str:
    wrong = len(evaluation.wrong)
    if not wrong:
        return f"Every {word(evaluation, 1)} is recognised."
    if evaluation.pairs[0].count == 1:
        return f"{wrong:,} {'is' if wrong == 1 else 'are'} wrong, no mistake is made twice."
    return f"{wrong:,} are wrong; most often, {sentence(evaluation.pairs[0], names)}."


def sentence(pair: Pair, names: Sequence[str]) -> str:
    """A mistake in words."""
    whole = f"{pair.count:,} of {pair.total:,}"
    return f"{names[pair.truth]} is taken for {names[pair.taken_for]} ({whole})"


def _honesty(evaluation: Evaluation) -> str:
    """Whether probabilities can be believed, as far as so many samples can tell."""
    mean, (low, high) = float(evaluation.confidence.mean()), evaluation.interval
    sure = f"{percent(mean)} on average"
    if abs(mean - evaluation.accuracy) <= CLOSE:
        return f"It is about as sure as it is right: {sure}."
    if mean > high:
        return f"It is surer than it should be: {sure}."
    if mean < low:
        return f"It is less sure than it could be: {sure}."
    few = f"{len(evaluation.truth):,} {word(evaluation, len(evaluation.truth))}"
    wrong = "high" if mean > evaluation.accuracy else "low"
    return f"Its probabilities are {sure}; from {few} one cannot tell whether that is too {wrong}."


def word(evaluation: Evaluation, number: int) -> str:
    """What samples are called."""
    return ("image" if evaluation.of_images else "sample") + ("" if number == 1 else "s")
