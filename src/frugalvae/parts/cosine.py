"""Cosine head: Eq. 3 with one free vector per class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from frugalvae.console import track
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths import arrays
from frugalvae.maths.arrays import Array, find_device
from frugalvae.parts.defaults import ReplayDefaults
from frugalvae.parts.protocols import Replay, Task
from frugalvae.parts.tensors import batches, to_array, to_generator, to_tensor, unit


class CosineHead(ReplayDefaults):
    """One vector per class and one temperature, fitted on replay by Adam.

    Parameters
    ----------
    start
        Initial class vectors: the ``"means"`` of replayed samples, or the ``"text"`` features
        of class names, which every task must then provide.
    anchor
        How strongly class vectors are held where they start: the weight, in the loss, of the mean
        squared distance from there, both as unit vectors. With ``start="text"`` it is the cheapest
        head that stays near CLIP's zero-shot classifier, as learned prompts do.
    epochs, samples
        The number of epochs, and samples per class in an epoch. With ``start="text"``, 0 epochs
        is CLIP's zero-shot classification, which needs no memory.
    resample
        Draw new samples for every epoch; otherwise the first ones are used throughout.
    batch_size, learning_rate
        Of Adam; the learning rate falls to zero as a cosine.
    temperature
        Initial temperature of Eq. 3; it is fitted too.

    Examples
    --------
    >>> from frugalvae.parts.store_all import StoreAllMemory
    >>> task = Task(np.eye(2), np.array([0, 1]))
    >>> memory, rng = StoreAllMemory(), np.random.default_rng(0)
    >>> memory.learn(task, rng)
    >>> head = CosineHead(epochs=1)
    >>> head.learn(task, Replay(memory, rng))
    >>> int(head.logits(np.array([[2.0, 1.0]])).argmax())
    0
    """

    vectors_: Array
    temperature_: Array

    def __init__(
        self,
        start: Literal["means", "text"] = "means",
        *,
        anchor: float = 0.0,
        epochs: int = 30,
        samples: int = 64,
        resample: bool = True,
        batch_size: int = 512,
        learning_rate: float = 0.01,
        temperature: float = 0.05,
    ) -> None:
        check_choice("start", start, ("means", "text"))
        check_number("anchor", anchor, 0)
        check_choice("resample", resample, (True, False))
        check_number("epochs", epochs, 0, 100_000, whole=True)
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("batch_size", batch_size, 1, 65_536, whole=True)
        check_number("learning_rate", learning_rate, 1e-12)
        check_number("temperature", temperature, 1e-6)
        self.start = start
        self.anchor = anchor
        self.epochs = epochs
        self.samples = samples
        self.resample = resample
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.classes_: list[int] = []
        self.text_: dict[int, Array] = {}

    def register(self, task: Task) -> None:
        """Record the text features of new classes, if vectors start from them."""
        if self.start != "text":
            return
        if not set(task.classes) <= set(task.text):
            raise InputError(
                "a head with start='text' needs the text feature of every new class; "
                "pass text={label: vector, ...}, or use start='means'"
            )
        self.text_ |= {label: task.text[label] for label in task.classes}

    def learn(self, task: Task, replay: Replay) -> None:
        """Fit all class vectors on replay of every class."""
        self.classes_ = list(replay.classes)
        device, drawn = find_device(), None
        if self.epochs or self.start == "means":
            drawn = draw(replay, self.samples, device)
        start = self._initial_vectors(drawn, device)  # (k, d)
        vectors = start.clone().requires_grad_()
        log_scale = vectors.new_tensor(1 / self.temperature).log().requires_grad_()
        optimiser = torch.optim.Adam([vectors, log_scale], self.learning_rate, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(self.epochs, 1))
        for epoch in replay_epochs(
            replay,
            self.epochs,
            self.samples,
            self.batch_size,
            device,
            first=drawn,
            resample=self.resample,
        ):
            for features, labels in epoch:
                logits = unit(features) @ unit(vectors).T / (-log_scale).exp()  # (n, k)
                loss = torch.nn.functional.cross_entropy(logits, labels)
                if self.anchor:
                    moved = (unit(vectors) - start).square().sum(dim=1)  # (k,)
                    loss = loss + self.anchor * moved.mean()
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            schedule.step()
        self.vectors_ = to_array(unit(vectors.detach()))
        self.temperature_ = to_array((-log_scale.detach()).exp())

    def _initial_vectors(self, drawn: Samples | None, device: torch.device) -> Tensor:
        if self.start == "text":
            text = np.stack([self.text_[label] for label in self.classes_])
            return unit(to_tensor(text, device))
        assert drawn is not None
        return unit(drawn[0].view(len(self.classes_), self.samples, -1).mean(dim=1))

    def forget(self, label: int) -> list[str]:
        """Drop the class's vector and text feature."""
        self.text_.pop(label, None)
        if label not in self.classes_:
            return []
        keep = [row for row, known in enumerate(self.classes_) if known != label]
        self.vectors_ = self.vectors_[keep]
        self.classes_ = [known for known in self.classes_ if known != label]
        if not self.epochs and self.start == "text":
            return []
        return ["the head's other vectors were fitted while replay of it was there, too"]

    def logits(self, features: Array) -> Array:
        """Logits (n, k) of Eq. 3, in NumPy: predicting needs no PyTorch."""
        vectors = arrays.unit(self.vectors_.astype(np.float64))  # (k, d)
        similar: Array = arrays.unit(features.astype(np.float64)) @ vectors.T
        return similar / float(self.temperature_)

    def arrays(self) -> dict[str, Array]:
        """Class vectors, the temperature, and text features if vectors start from them."""
        text = {"text": arrays.stack(self.text_)} if self.text_ else {}
        return {"vectors": self.vectors_, "temperature": self.temperature_.reshape(1)} | text


# Epochs of replayed samples, for heads that are fitted by gradient steps.


#: Features (n, d), and the position of each one's class, (n,).
Samples = tuple[Tensor, Tensor]


def draw(replay: Replay, samples: int, device: torch.device) -> Samples:
    """Replayed samples on a device, ``samples`` per class."""
    x, y = replay.draw(samples)
    return to_tensor(x, device), torch.from_numpy(y).to(device)


def replay_epochs(
    replay: Replay,
    epochs: int,
    samples: int,
    batch_size: int,
    device: torch.device,
    *,
    first: Samples | None = None,
    resample: bool = True,
) -> Iterator[Iterator[Samples]]:
    """For each epoch, its batches; an epoch has ``samples`` per class.

    Parameters
    ----------
    first
        Samples for the first epoch, if they have been drawn already.
    resample
        Draw new samples for every epoch; otherwise the first ones are used throughout.
    """
    rng = to_generator(replay.rng, device)
    for epoch in track(range(epochs), "fitting the head"):
        if first is None or (epoch and resample):
            first = draw(replay, samples, device)
        x, y = first  # (n, d), (n,)
        yield ((x[rows], y[rows]) for rows in batches(len(x), batch_size, rng))
