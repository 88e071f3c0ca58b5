"""VAE-CGIL: one VAE per class, of which only the decoder is kept."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from frugalvae.console import track
from frugalvae.errors import check_choice, check_number
from frugalvae.maths.arrays import Array
from frugalvae.paper.departures import DRAWS, LimitedTraining, Noise, WarmUp, noise_std, one_cycle
from frugalvae.paper.networks import MLP, layer_sizes, parameters
from frugalvae.paper.normalise import ClasswiseNormaliser, GlobalNormaliser, normalisation
from frugalvae.paper.nullspace import Change, Decoder
from frugalvae.paper.vae_fo import Batch, train
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, Task, component
from frugalvae.parts.tensors import TensorTask, device_of, stack, to_array, to_generator


class ClassVAEMemory(MemoryDefaults):
    """A separate unconditional VAE per class, as in CGIL.

    Parameters
    ----------
    classwise, hidden, latent, epochs, batch_size, max_steps, learning_rate, warm_up, noise
        As in :class:`frugalvae.paper.variants.VAESettings`; ``max_steps`` is per class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = ClassVAEMemory(hidden=16, latent=4, epochs=5)
    >>> memory.learn(Task(rng.normal(size=(20, 8)), np.arange(20) % 2), rng)
    >>> memory.sample(1, 3, rng).shape
    (3, 8)
    """

    holds_tensors = True

    def __init__(
        self,
        *,
        classwise: bool = True,
        hidden: int = 512,
        latent: int = 256,
        epochs: int = 500,
        batch_size: int = 128,
        max_steps: int = 200,
        learning_rate: float = 1e-3,
        warm_up: float = 0.3,
        noise: Noise = "match",
    ) -> None:
        check_choice("classwise", classwise, (True, False))
        for name, size in (("hidden", hidden), ("latent", latent)):
            check_number(name, size, 1, 8_192, whole=True)
        check_number("learning_rate", learning_rate, 1e-12)
        if noise != "match":
            check_number("noise", noise, 0)
        self.classwise = classwise
        self.hidden = hidden
        self.latent = latent
        self.learning_rate = learning_rate
        self.warm_up = warm_up
        self.training = LimitedTraining(
            epochs, batch_size, bound=WarmUp(warm_up), schedule=one_cycle, max_steps=max_steps
        )
        self.noise = noise
        self.normaliser_ = ClasswiseNormaliser() if classwise else GlobalNormaliser()
        self.decoders_: dict[int, MLP] = {}
        self.noise_: dict[int, Tensor] = {}

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.decoders_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Train a VAE on each class, and drop its encoder."""
        device = device_of(self.noise_)
        self._learn(TensorTask.of_arrays(task, device), to_generator(rng, device))

    def _learn(self, task: TensorTask, rng: torch.Generator) -> None:
        self.normaliser_.learn(task)
        dim = task.features.shape[1]
        for label in track(task.classes, "training a VAE per class"):
            x = self.normaliser_.normalise(label, task.of(label))  # (n, d)
            data = Batch(x, x.new_zeros(len(x), self.latent))  # Eq. 6 is then Eq. 1
            encoder = MLP([dim, self.hidden, self.hidden, 2 * self.latent], rng=rng)
            decoder = MLP([self.latent, self.hidden, self.hidden, dim], rng=rng)
            change, rates = Change(Decoder(decoder), [], []), (self.learning_rate,) * 2
            train(encoder, change, data, self.training, rates, rng)
            self.decoders_[label] = decoder
            self.noise_[label] = noise_std(x, self._decode(label, DRAWS, rng), self.noise)

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Decode draws from N(0, I) with the class's decoder."""
        generator = to_generator(rng, device_of(self.noise_))
        x_hat = self._decode(label, count, generator)  # (count, d)
        noise = self.noise_[label] * torch.empty_like(x_hat).normal_(generator=generator)
        return to_array(self.normaliser_.restore(label, x_hat + noise))

    @torch.no_grad()
    def _decode(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        z = torch.empty(count, self.latent, device=rng.device).normal_(generator=rng)
        return self.decoders_[label](z)

    def forget(self, label: int) -> list[str]:
        """Drop the class's decoder; it may remain in a normalisation that all classes share."""
        del self.decoders_[label], self.noise_[label]
        return self.normaliser_.forget(label)

    def arrays(self) -> dict[str, Array]:
        """All decoders, and what is kept per class."""
        kept = {"noise": stack(self.noise_)}
        for label, decoder in self.decoders_.items():
            kept |= {f"decoder.{label}.{key}": v for key, v in decoder.state_dict().items()}
        return self.normaliser_.arrays() | {name: to_array(kept[name]) for name in kept}

    def components(self) -> list[Component]:
        """All decoders, and what is kept per class."""
        if not self.decoders_:
            return []
        dim = next(iter(self.decoders_.values())).linears[-1].out_features
        return self.cost(dim, len(self.decoders_))

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost: a decoder per class, and what is kept of each class."""
        decoder = parameters(layer_sizes([self.latent, self.hidden, self.hidden, dim]))
        return [
            component("decoders", classes * decoder),
            normalisation(dim, classes, self.classwise),
            component("sample noise", 0, classes),
        ]
