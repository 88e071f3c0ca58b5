"""Predict: what samples show, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frugalvae.images import BATCH_SIZE
from frugalvae.model.answers import Answer, Batch, Unreadable, rank

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples


def predict(
    model: Model,
    samples: Samples,
    encoder: Encoder | None = None,
    batch_size: int = BATCH_SIZE,
    **how: Any,
) -> Iterator[Batch]:
    """The results of samples in their order, as they come; first what a folder has besides.

    ``how`` is what :func:`frugalvae.model.answers.rank` is asked: ``top``, ``min_probability``,
    ``threshold``, ``error``, ``coverage``.
    """
    yield [Unreadable(name, why, skipped=True) for name, why in samples.skipped.items()]
    for names, encoded in samples.batches(encoder, batch_size):
        results: dict[int, Answer | Unreadable] = {
            place: Unreadable(names[place], why) for place, why in encoded.reasons.items()
        }
        places = encoded.places.tolist()
        answers = rank(model, [names[place] for place in places], encoded.features, **how)
        results |= dict(zip(places, answers, strict=True))
        yield [results[place] for place in range(len(names))]
