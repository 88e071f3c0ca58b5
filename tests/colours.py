"""Encoders that need no model, for tests; other processes import them in no time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


class Colours:
    """An encoder whose features are the average colour of an image; it counts its work."""

    dim, side = 3, None

    def __init__(self, weights: str = "0", text: bool = False, pause: float = 0.0) -> None:
        self.identity = {"encoder": "colours", "weights": weights}
        self.text, self.pause, self.batches = text, pause, list[int]()

    def prepare(self, image: Image.Image) -> NDArray[np.float32]:
        return np.asarray(image.resize((4, 4)), np.float32).transpose(2, 0, 1)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        time.sleep(self.pause)
        self.batches.append(len(batch))
        return batch.mean(axis=(2, 3))

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        return np.eye(3, dtype=np.float32)[: len(names)] if self.text else None

    def to(self, device: str | None) -> Colours:
        return self


class Held(Colours):
    """An encoder that stops after some batches while a file is there: it is killed at work."""

    def __init__(self, gate: Path, after: int = 0) -> None:
        super().__init__()
        self.gate, self.after = gate, after
        gate.touch()

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        while len(self.batches) >= self.after and self.gate.exists():
            time.sleep(0.01)
        return super().encode(batch)


class Deadly(Colours):
    """An encoder whose process dies, unless it is the process that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.parent = os.getpid()

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        if os.getpid() != self.parent:
            os._exit(1)
        return super().encode(batch)
