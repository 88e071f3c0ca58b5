"""The paper's method: one conditional VAE that learns task after task, without replay.

:meth:`IncrementalVAE.learn` is Algorithm 1 of the paper, up to the classifier. Nothing in this
file goes beyond the paper; :mod:`frugalvae.memories.vae.memory` makes a memory of it and adds
what is ours.

Shapes: n samples of k new classes, d features, ``latent`` dimensions, ``old`` earlier classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array
from frugalvae.maths.latent_priors import Placement, make_prior
from frugalvae.maths.networks import MLP
from frugalvae.maths.nullspace import NullSpace
from frugalvae.maths.training import Batch, encode, train_vae
from frugalvae.memories.vae.decoder import Decoder, UpdateRule, latents_to_protect, new_decoder
from frugalvae.memories.vae.normalise import Normaliser, make_normaliser
from frugalvae.memories.vae.residual import noise_std
from frugalvae.memories.vae.settings import PaperSettings
from frugalvae.tensors import TensorTask, device_of, to_array, to_generator

DRAWS = 256  # decoded samples per class from which statistics are estimated


class IncrementalVAE:
    """One VAE for all classes, each with its own Gaussian N(mu_y, I) in latent space.

    Attributes
    ----------
    means_
        Latent mean mu_y of each class, (latent,).
    noise_
        Standard deviation of the noise that decoded samples of each class lack.
    encoder_, decoders_, route_
        The networks, and which decoder each class uses.
    """

    settings_type: type[PaperSettings] = PaperSettings

    def __init__(self, **settings: Any) -> None:
        self.settings = self.settings_type(**settings)
        self.prior = make_prior(self.settings.prior)
        self.normaliser_: Normaliser = make_normaliser(self.settings.classwise)
        self.encoder_: MLP | None = None
        self.decoders_: list[Decoder] = []
        self.route_: dict[int, int] = {}
        self.means_: dict[int, Tensor] = {}
        self.noise_: dict[int, Tensor] = {}

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Learn the classes of a task (Algorithm 1)."""
        device = device_of(self.means_)
        self._learn(TensorTask.of_arrays(task, device), to_generator(rng, device))

    def _learn(self, task: TensorTask, rng: torch.Generator) -> None:
        x = self._normalise(task)  # (n, d)
        self._prepare_encoder(task, rng)
        decoder = self._prepare_decoder(task, rng)
        self._place_priors(task, x, rng)  # Eq. 5
        self._train(decoder, task, x, rng)  # Eq. 6, in the null space by Eqs. 7 and 8
        for label in task.classes:
            decoded = self._decode(label, DRAWS, rng)  # (DRAWS, d)
            self._fit_residual(label, x[task.labels == label], decoded)
        self._update_null_spaces(decoder, task, x, rng)  # Eq. 9

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Synthetic features (count, d) of a class: decode draws from its Gaussian."""
        return to_array(self._sample(label, count, to_generator(rng, device_of(self.means_))))

    def _sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        x_hat = self._decode(label, count, rng)  # (count, d)
        return self.normaliser_.restore(label, x_hat + self._draw_residual(label, x_hat, rng))

    def _normalise(self, task: TensorTask) -> Tensor:
        """Features (n, d), each normalised as its class is."""
        self._learn_normaliser(task)
        x = torch.empty_like(task.features)
        for label in task.classes:
            x[task.labels == label] = self.normaliser_.normalise(label, task.of(label))
        return x

    def _learn_normaliser(self, task: TensorTask) -> None:
        self.normaliser_.learn(task)

    def _prepare_encoder(self, task: TensorTask, rng: torch.Generator) -> None:
        """Make the encoder for the first task, and add embeddings of new classes."""
        if self.encoder_ is None:
            hidden, latent = self.settings.hidden, self.settings.latent
            sizes = [task.features.shape[1], hidden, hidden, 2 * latent]
            self.encoder_ = MLP(sizes, self.settings.embedding, rng=rng)
        self.encoder_.add_classes(len(task.classes), rng)

    def _prepare_decoder(self, task: TensorTask, rng: torch.Generator) -> Decoder:
        """The decoder to train: a new one, the last one, or a fork of it if dynamic."""
        if self._needs_new_decoder():
            self.decoders_.append(self._new_decoder(task.features.shape[1], rng))
        elif self.settings.dynamic:
            self.decoders_.append(self.decoders_[-1].fork())
        decoder = self.decoders_[-1]
        decoder.network.add_classes(len(task.classes), rng)
        self.route_ |= dict.fromkeys(task.classes, len(self.decoders_) - 1)
        return decoder

    def _needs_new_decoder(self) -> bool:
        return not self.decoders_

    def _new_decoder(self, dim: int, rng: torch.Generator) -> Decoder:
        sizes = [self.settings.latent, self.settings.hidden, self.settings.hidden, dim]
        return new_decoder(sizes, self.settings.embedding, self.settings.protected_layers, rng)

    @torch.no_grad()
    def _place_priors(self, task: TensorTask, x: Tensor, rng: torch.Generator) -> Placement:
        """Take the mean latent of each new class, and iterate Eq. 5; old means stay."""
        old = list(self.means_.values())
        self.means_ |= dict.fromkeys(task.classes, x.new_zeros(self.settings.latent))
        mu = self._encode(task, x)  # (n, latent)
        latent_means = torch.stack([mu[task.labels == y].mean(dim=0) for y in task.classes])
        fixed = torch.stack(old) if old else latent_means[:0]  # (old, latent)
        placement = self.prior.place(latent_means, fixed, rng)  # means: (k, latent)
        self.means_ |= dict(zip(task.classes, map(torch.clone, placement.means), strict=True))
        return placement

    def _encode(self, task: TensorTask, x: Tensor) -> Tensor:
        assert self.encoder_ is not None
        return encode(self.encoder_, self._batch(task, x), relative=False)[0]  # (n, latent)

    def _train(self, decoder: Decoder, task: TensorTask, x: Tensor, rng: torch.Generator) -> None:
        """Maximise Eq. 6. The decoder changes only in the null space of old classes."""
        assert self.encoder_ is not None
        rule, rate = self._update_rule(decoder)
        groups = [
            {"params": list(self.encoder_.parameters()), "lr": self.settings.learning_rate},
            {"params": rule.parameters, "lr": rate},
        ]
        hooks = rule.after_backward, rule.after_step
        networks = self.encoder_, decoder.network
        train_vae(*networks, self._batch(task, x), groups, self.settings.training, rng, *hooks)

    def _update_rule(self, decoder: Decoder) -> tuple[UpdateRule, float]:
        """What a task may change in the decoder, and the learning rate."""
        settings = self.settings
        spaces = self._null_spaces(decoder) if decoder.tasks else []
        rule = decoder.update_rule(settings.decoder, spaces, settings.dynamic, settings.projection)
        return rule, settings.later_learning_rate if decoder.tasks else settings.learning_rate

    def _null_spaces(self, decoder: Decoder) -> list[NullSpace]:
        return decoder.null_spaces(self.settings.ratio, self.settings.max_proportion)

    def _update_null_spaces(
        self, decoder: Decoder, task: TensorTask, x: Tensor, rng: torch.Generator
    ) -> None:
        """Protect the layer inputs of the new classes from later tasks."""
        data, training = self._batch(task, x), self.settings.training
        means = torch.stack([self.means_[label] for label in task.classes])  # (k, latent)
        classes = Batch(means, means, self._rows(task.classes))
        latents = latents_to_protect(
            self.settings.inputs, classes, data, self.encoder_, training, rng
        )
        decoder.protect(*latents)
        decoder.tasks += 1

    @torch.no_grad()
    def _decode(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Decoded draws from the class's Gaussian, (count, d), on the normalised scale."""
        mean = self.means_[label]
        z = mean + torch.empty(count, len(mean), device=mean.device).normal_(generator=rng)
        return self._network(label)(z, self._rows([label] * count))

    def _network(self, label: int) -> MLP:
        return self.decoders_[self.route_[label]].network

    def _fit_residual(self, label: int, real: Tensor, decoded: Tensor) -> None:
        """Find the noise of the likelihood, from real and decoded samples (., d) of a class."""
        self.noise_[label] = noise_std(real, decoded, self.settings.noise)

    def _draw_residual(self, label: int, x_hat: Tensor, rng: torch.Generator) -> Tensor:
        return self.noise_[label] * torch.empty_like(x_hat).normal_(generator=rng)

    def _batch(self, task: TensorTask, x: Tensor) -> Batch:
        labels = task.labels.tolist()
        prior_means = torch.stack([self.means_[label] for label in labels])  # (n, latent)
        return Batch(x, prior_means, self._rows(labels))

    def _rows(self, labels: list[int]) -> Tensor | None:
        """The row of each label's class in the embedding tables, (n,), if there are any."""
        if not self.settings.embedding:
            return None
        position = {label: row for row, label in enumerate(self.means_)}
        return torch.tensor([position[y] for y in labels], device=device_of(self.means_))
