"""What heads share that are weights and biases, fitted on replay."""

from __future__ import annotations

import numpy as np

from frugalvae.heads.defaults import ReplayDefaults
from frugalvae.maths.arrays import Array


class Weights(ReplayDefaults):
    """A linear rule: a subclass says how it is fitted, and its ``scale`` from scores to logits."""

    weights_: Array
    bias_: Array
    scale: float

    def forget(self, label: int) -> list[str]:
        """Drop the class's weights."""
        if label not in self.classes_:
            return []
        keep = [column for column, known in enumerate(self.classes_) if known != label]
        self.weights_, self.bias_ = self.weights_[:, keep].copy(), self.bias_[keep]
        self.classes_ = [known for known in self.classes_ if known != label]
        return ["the head's other weights were fitted while replay of it was there, too"]

    def logits(self, features: Array) -> Array:
        """Scores times ``scale``, (n, k)."""
        return self.scale * (features.astype(np.float64) @ self.weights_ + self.bias_)

    def arrays(self) -> dict[str, Array]:
        """Weights (d, k) and biases (k,)."""
        return {"weights": self.weights_, "bias": self.bias_}
