"""A classifier that only answers.

``FrugalClassifier`` is a scikit-learn classifier, and importing scikit-learn takes longer
than naming a photograph does. What names it is the head; this is all that ``predict`` needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugalvae.checks import check_finite, check_learned
from frugalvae.errors import InputError
from frugalvae.saving.classifier import load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.heads.base import Head
    from frugalvae.saving.reader import Reader
    from frugalvae.tool.store import Store

ROWS = 8192  # that are scored at a time


class Answering:
    """The answers of a ``FrugalClassifier``, to the last bit, and nothing else of it.

    Attributes
    ----------
    classes_, encoder_, confidence_
        As they were saved.
    """

    classes_: NDArray[Any]
    head_: Head
    head_due_: bool
    n_features_in_: int
    encoder_: dict[str, Any] | None = None
    confidence_: Any = None

    def __init__(self, device: str | None = None) -> None:
        self.device = device

    def predict_proba(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probability of each class, columns in the order of ``classes_``."""
        temperature = 1.0 if self.confidence_ is None else float(self.confidence_.temperature)
        return (torch.as_tensor(self._logits(x)) / temperature).softmax(dim=1).numpy()

    def _logits(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        if x.shape[1] != self.n_features_in_:
            raise InputError(
                f"features have {x.shape[1]} numbers, and the classifier was taught "
                f"{self.n_features_in_}; use the same encoder"
            )
        blocks = [check_finite(x[start : start + ROWS]) for start in range(0, len(x), ROWS)]
        logits = [
            self.head_.logits(torch.as_tensor(rows, device=self._device()).double())
            for rows in blocks
        ]
        scores: NDArray[np.float64] = torch.cat(logits).cpu().numpy()
        return scores[:, np.argsort(self.head_.classes)]

    def _device(self) -> torch.device:
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))


def load_answering(store: Store) -> Answering:
    """What answers for the classifier in a file."""
    store.check_there()
    return load(Answering, store.given, None, check_head)  # type: ignore[type-var]


def check_head(classifier: Any, _: Reader) -> None:
    """Refuse a head that cannot answer; nothing else is asked."""
    if classifier.head_due_:
        raise InputError("its head was not fitted after the last task; call fit_head() and save()")
    check_learned(classifier.head_)
