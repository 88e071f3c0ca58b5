"""The paper's memory: one conditional VAE that learns task after task.

:meth:`VAEMemory.learn` is Algorithm 1 of the paper, line by line, up to the
classifier.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frugalvae import cost
from frugalvae.cost import Component
from frugalvae.interfaces import Task
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import find_device
from frugalvae.maths.equations import reparametrise
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage
from frugalvae.maths.networks import MLP
from frugalvae.maths.nullspace import NullSpace
from frugalvae.maths.priors import SinglePrior, make_prior
from frugalvae.maths.symmetric import pack
from frugalvae.maths.training import (
    DRAWS,
    Batch,
    encode,
    missing_spread,
    teach_directions,
    train_vae,
)
from frugalvae.memories.defaults import MemoryDefaults
from frugalvae.memories.vae.decoder import Decoder, Freedom, fresh_decoder
from frugalvae.memories.vae.density import LocalDecoder
from frugalvae.memories.vae.directions import alike, class_factors
from frugalvae.memories.vae.history import LayerState, PriorState, layer_states, prior_state
from frugalvae.memories.vae.normalise import Move, make_normaliser, stack
from frugalvae.memories.vae.settings import FactorSettings, VAESettings
from frugalvae.tensors import TensorTask, to_array, to_generator, to_tensor

LEAST_NOISE = 1e-3  # of a density: without any, most samples would be impossible


class VAEMemory(MemoryDefaults):
    """One VAE for all classes, each with its own Gaussian in latent space.

    Parameters
    ----------
    **settings
        See :class:`frugalvae.memories.vae.settings.VAESettings`.

    Attributes
    ----------
    means_
        Latent mean of each class.
    decoders_, route_
        All decoders, and which of them each class uses.
    layers_, priors_
        What happened at each task.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = VAEMemory(hidden=16, latent=4, epochs=5)
    >>> memory.learn(Task(rng.normal(size=(20, 8)), np.arange(20) % 2), rng)
    >>> memory.learn(Task(rng.normal(size=(10, 8)), np.full(10, 2)), rng)
    >>> memory.sample(2, 3, rng).shape
    (3, 8)
    """

    holds_tensors = True
    __signature__ = inspect.signature(VAESettings)
    settings_type = VAESettings

    def __init__(self, **settings: Any) -> None:
        self.settings = self.settings_type(**settings)
        self.prior = make_prior(self.settings.prior)
        self.normaliser_ = make_normaliser(
            self.settings.classwise, whitened=self.settings.whitened, ridge=self.settings.ridge
        )
        self.encoder_: MLP | None = None
        self.decoders_: list[Decoder] = []
        self.route_: dict[int, int] = {}
        self.means_: dict[int, Tensor] = {}
        self.noise_: dict[int, Tensor] = {}
        self.factors_: dict[int, Tensor] = {}
        self.layers_: list[LayerState] = []
        self.priors_: list[PriorState] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """Algorithm 1: place the Gaussians, train, update the null spaces."""
        self._learn(TensorTask.of_arrays(task, self._device), to_generator(rng, self._device))

    def _learn(self, task: TensorTask, rng: torch.Generator) -> None:
        move = self.normaliser_.learn(task)
        if move is not None:
            self._follow(move)
        x = self._normalised(task)
        if not self.settings.directions:
            self._encoder_for(task, rng)
        decoder = self._decoder_for(task, rng)
        self._place_priors(task, x, rng)
        data = self._batch(task, x)
        if self.encoder_ is None:
            self._teach(decoder, task, x, rng)
        else:
            self._train(self.encoder_, decoder, data, rng)
        for label in task.classes:
            self._take_leftover(label, x[task.labels == label], self._decode(label, DRAWS, rng))
        decoder.remember(*self._latents_to_protect(task, data, rng))
        decoder.tasks += 1
        self._drop_unused_decoders()
        self._record(decoder)

    @property
    def _device(self) -> torch.device:
        """Where it has learned; before that, where it is to."""
        return next(iter(self.means_.values())).device if self.means_ else find_device()

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Decode draws from the class's Gaussian, and add what they lack of its spread."""
        return to_array(self._sample(label, count, to_generator(rng, self._device)))

    def _sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        x = self._decode(label, count, rng)
        noise = self.noise_[label] * torch.empty_like(x).normal_(generator=rng)
        if self.settings.whitened:
            noise = noise * self.normaliser_.spread()
        if self.settings.factors:
            factors = self.factors_[label]
            own = torch.empty(count, factors.shape[1], device=x.device).normal_(generator=rng)
            noise = noise + own @ factors.T
        return self.normaliser_.restore(label, x + noise)

    @property
    def density_width(self) -> int:
        """All features."""
        return self.decoders_[0].network.linears[-1].out_features

    @torch.no_grad()
    def log_density(
        self, features: Array, shrinkage: Shrinkage = SHRINKAGE, *, draws: int = 8
    ) -> Array:
        """Logarithm of each class's density of samples, (n, k), as :attr:`classes` are ordered.

        An importance-weighted bound of so many draws, which are always the same ones. With
        none, each class's decoder is taken as the linear map that it is at the class's mean:
        a Gaussian, many times as fast. How much of a class's own counts is a setting, ``share``:
        ``shrinkage`` is not used.
        """
        x = to_tensor(features, self._device)
        rng = torch.Generator().manual_seed(0)
        z = torch.empty(draws, self.settings.latent).normal_(generator=rng).to(x)
        columns, prepared = [], self.normaliser_.prepare(x)
        for label in self.means_:
            density = self._class_log_density(label, self.normaliser_.place(label, prepared), z)
            columns.append(density + self.normaliser_.log_volume(label, x))
        return to_array(torch.stack(columns, dim=1).double())

    def _class_log_density(self, label: int, x: Tensor, draws: Tensor) -> Tensor:
        """Of normalised samples, with only a share of what is the class's own."""
        network, mean = self.decoders_[self.route_[label]].network, self.means_[label]
        noise, row = 1.0, self._rows([label])
        if not self.settings.whitened:  # there they are around the class's mean, in units of noise
            x, noise = x - network(mean[None], row), max(float(self.noise_[label]), LEAST_NOISE)
        factors = self.factors_.get(label, x.new_zeros(x.shape[1], 0))
        local = LocalDecoder.around(network, mean, row, self.settings.share, factors, noise)
        return local.log_density(x, draws)

    @torch.no_grad()
    def _decode(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        mean = self.means_[label]
        z = mean + torch.empty(count, len(mean), device=mean.device).normal_(generator=rng)
        network = self.decoders_[self.route_[label]].network
        decoded: Tensor = network(z, self._rows([label] * count))
        if self.settings.whitened:  # its mean is known: only what is around it is needed
            decoded = decoded - network(mean[None], self._rows([label]))
        return decoded

    def _take_leftover(self, label: int, real: Tensor, decoded: Tensor) -> None:
        """What the class has in excess of what is decoded: directions, and noise."""
        factors, spread = None, None
        if self.settings.whitened:
            spread = self.normaliser_.spread()
        if self.settings.factors:
            shared = real.new_ones(real.shape[1]) if spread is None else spread
            factors = class_factors(real, decoded, shared, self.settings.factors)
            self.factors_[label] = factors
        self.noise_[label] = missing_spread(real, decoded, self.settings.noise, factors, spread)

    @torch.no_grad()
    def _follow(self, move: Move) -> None:
        """Say the same in the coordinates of a normalisation that has changed.

        What old classes are decoded to stays where it was among features: the last layer is
        multiplied from its other side than null spaces are.
        """
        for decoder in self._with_own_last_layer():
            decoder.turn_output(move.there)
        for label, factors in self.factors_.items():
            self.factors_[label] = move.there.T @ factors
        if self.encoder_ is not None:
            first, dim = self.encoder_.linears[0].weight, len(move.there)
            first[:, :dim] = first[:, :dim] @ move.back.T

    def _with_own_last_layer(self) -> list[Decoder]:
        return list({id(d.network.linears[-1].weight): d for d in self.decoders_}.values())

    def forget(self, label: int) -> list[str]:
        """Drop the class's Gaussian, statistics and embeddings; networks stay as they are."""
        row = list(self.means_).index(label)
        if self.encoder_ is not None:
            self.encoder_.drop_class(row)
        self.decoders_[-1].network.drop_class(row)  # one set of tables serves all
        del self.means_[label], self.noise_[label], self.route_[label]
        self.factors_.pop(label, None)
        self._drop_unused_decoders()
        remains = ["the weights of encoder and decoder were trained on it and are unchanged"]
        if self.settings.decoder == "null-space":
            remains.append("the decoder's null space still keeps clear of what it fed the layers")
        return remains + self.normaliser_.forget(label)

    def _drop_unused_decoders(self) -> None:
        """Without those whose classes are all gone; the next one starts from the last."""
        last = len(self.decoders_) - 1
        used = sorted({*self.route_.values(), last})
        self.decoders_ = [self.decoders_[number] for number in used]
        self.route_ = {label: used.index(number) for label, number in self.route_.items()}

    def _normalised(self, task: TensorTask) -> Tensor:
        x = torch.empty_like(task.features)
        for label in task.classes:
            x[task.labels == label] = self.normaliser_.normalise(label, task.of(label))
        return x

    def _encoder_for(self, task: TensorTask, rng: torch.Generator) -> MLP:
        """The encoder goes on from where it is, with embeddings for the new classes."""
        if self.encoder_ is None:
            hidden, latent = self.settings.hidden, self.settings.latent
            sizes = [task.features.shape[1], hidden, hidden, 2 * latent]
            self.encoder_ = MLP(sizes, self.settings.embedding, rng=rng)
        self.encoder_.add_classes(len(task.classes), rng)
        return self.encoder_

    def _decoder_for(self, task: TensorTask, rng: torch.Generator) -> Decoder:
        """The decoder to train: the last one, a fork of it, or a fresh one."""
        hidden, dynamic = self.settings.hidden, self.settings.dynamic
        fresh = not self.decoders_ or (
            self.settings.on_saturation == "fresh" and bool(self.saturated_)
        )
        if fresh:
            sizes = [self.settings.latent, hidden, hidden, task.features.shape[1]]
            protect = self.settings.protected_layers
            decoder = fresh_decoder(sizes, self.settings.embedding, protect, rng)
            if self.decoders_:  # a class uses one decoder only: one set of tables serves all
                decoder.network.tables = self.decoders_[-1].network.tables
        else:
            decoder = self.decoders_[-1].fork() if dynamic else self.decoders_[-1]
        if fresh or dynamic:
            self.decoders_.append(decoder)
        decoder.network.add_classes(len(task.classes), rng)
        self.route_ |= dict.fromkeys(task.classes, len(self.decoders_) - 1)
        return decoder

    @torch.no_grad()
    def _place_priors(self, task: TensorTask, x: Tensor, rng: torch.Generator) -> None:
        """Algorithm 1: class means, then the fixed-point iteration over them."""
        old = list(self.means_.values())
        self.means_ |= dict.fromkeys(task.classes, x.new_zeros(self.settings.latent))
        mu = x.new_zeros(len(x), self.settings.latent)  # without an encoder, they only repel
        if self.encoder_ is not None:
            mu, _ = encode(self.encoder_, self._batch(task, x), relative=False)
        latent_means = torch.stack([mu[task.labels == y].mean(dim=0) for y in task.classes])
        fixed = torch.stack(old) if old else latent_means[:0]
        placement = self.prior.place(latent_means, fixed, rng)
        self.means_ |= dict(zip(task.classes, map(torch.clone, placement.means), strict=True))
        self.priors_.append(prior_state(len(self.priors_) + 1, placement, stack(self.means_)))

    def _train(self, encoder: MLP, decoder: Decoder, data: Batch, rng: torch.Generator) -> None:
        """Train on Eq. 6, the decoder only where it may change."""
        freedom, rate = self._freedom(decoder)
        groups = [
            {"params": list(encoder.parameters()), "lr": self.settings.learning_rate},
            {"params": freedom.parameters, "lr": rate},
        ]
        hooks = freedom.after_backward, freedom.after_step
        train_vae(encoder, decoder.network, data, groups, self.settings.training, rng, *hooks)

    def _teach(self, decoder: Decoder, task: TensorTask, x: Tensor, rng: torch.Generator) -> None:
        """Teach directions of the classes, the decoder only where it may change."""
        freedom, rate = self._freedom(decoder)
        if not freedom.parameters:
            return
        spread = self.normaliser_.spread().expand(x.shape[1])
        nothing, count = x[:1] * 0, min(self.settings.directions, self.settings.latent)
        own = [
            class_factors(x[task.labels == label], nothing, spread, count) for label in task.classes
        ]
        maps = alike(torch.stack(own)).transpose(1, 2)
        means = torch.stack([self.means_[label] for label in task.classes])
        data = Batch(maps, means, self._rows(task.classes))
        hooks = freedom.after_backward, freedom.after_step
        training = self.settings.training
        teach_directions(decoder.network, data, freedom.parameters, rate, training, rng, *hooks)

    def _freedom(self, decoder: Decoder) -> tuple[Freedom, float]:
        """What of the decoder may change, and how fast."""
        settings = self.settings
        spaces = self._null_spaces(decoder) if decoder.tasks else []
        freedom = decoder.freedom(settings.decoder, spaces, settings.dynamic, settings.projection)
        return freedom, settings.later_learning_rate if decoder.tasks else settings.learning_rate

    def _null_spaces(self, decoder: Decoder) -> list[NullSpace]:
        return decoder.null_spaces(self.settings.ratio, self.settings.max_proportion)

    def _batch(self, task: TensorTask, x: Tensor) -> Batch:
        labels = task.labels.tolist()
        prior_means = torch.stack([self.means_[label] for label in labels])
        return Batch(x, prior_means, self._rows(labels))

    def _rows(self, labels: list[int]) -> Tensor | None:
        """Position of each label's class in the embedding tables."""
        if not self.settings.embedding:
            return None
        position = {label: row for row, label in enumerate(self.means_)}
        device = next(iter(self.means_.values())).device
        return torch.tensor([position[label] for label in labels], device=device)

    @torch.no_grad()
    def _posterior(self, data: Batch, rng: torch.Generator, *, mean: bool = False) -> Tensor:
        assert self.encoder_ is not None
        mu, sigma = encode(self.encoder_, data, self.settings.relative)
        return mu if mean else reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))

    def _latents_to_protect(
        self, task: TensorTask, data: Batch, rng: torch.Generator
    ) -> tuple[Tensor, Tensor | None, int]:
        """Latents, their embedding rows, and how many inputs to average over."""
        source = self.settings.inputs
        if source == "batch-mean":
            shuffled = data[torch.randperm(len(data), generator=rng, device=rng.device)]
            return self._posterior(shuffled, rng), shuffled.rows, self.settings.batch_size
        if source.startswith("posterior"):
            mean = source == "posterior-mean"
            return self._posterior(data, rng, mean=mean), data.rows, 1
        count = 1 if source == "prior-mean" else DRAWS
        labels = [label for label in task.classes for _ in range(count)]
        z = torch.stack([self.means_[label] for label in labels])
        if source == "prior":
            z = z + torch.empty_like(z).normal_(generator=rng)
        return z, self._rows(labels), 1

    def _record(self, decoder: Decoder) -> None:
        spaces = self._null_spaces(decoder)
        self.layers_ += layer_states(len(self.priors_), len(self.decoders_), spaces)
        if self.settings.on_saturation == "warn":
            for state in self.saturated_:
                state.warn()

    @property
    def saturated_(self) -> list[LayerState]:
        """Layers whose null space is used up, as of the last task."""
        limits = self.settings.saturation, self.settings.min_free
        now = [state for state in self.layers_ if state.task == len(self.priors_)]
        return [state for state in now if state.is_used_up(*limits)]

    def arrays(self) -> dict[str, Array]:
        """Networks, covariances, and what is kept of each class."""
        kept = {"noise": stack(self.noise_)}
        if self.settings.factors:
            kept["factors"] = stack(self.factors_)
        if not isinstance(self.prior, SinglePrior):
            kept["means"] = stack(self.means_)
        if self.encoder_ is not None:
            kept |= {f"encoder.{key}": value for key, value in self.encoder_.state_dict().items()}
        seen: set[int] = set()  # decoders share what they have in common
        covariances = {}
        for number, decoder in enumerate(self.decoders_):
            for key, value in decoder.network.named_parameters(f"decoder.{number}"):
                if id(value) not in seen:
                    kept[key] = value
            for layer, inputs in enumerate(decoder.inputs):
                if id(inputs) not in seen:
                    covariances[f"inputs.{number}.{layer}"] = pack(to_array(inputs.sum_))
            seen |= {id(part) for part in (*decoder.network.parameters(), *decoder.inputs)}
        found = {name: to_array(tensor) for name, tensor in kept.items()}
        return self.normaliser_.arrays() | found | covariances

    def components(self) -> list[Component]:
        """Networks, covariances, and what is kept of each class."""
        if not self.decoders_:
            return []
        fresh = len({id(decoder.network.linears[0].weight) for decoder in self.decoders_})
        tasks = len(self.decoders_)  # of which a dynamic one has as many as tasks that are in use
        return self._cost(self.density_width, len(self.means_), tasks, fresh)

    def cost(
        self, dim: int, classes: int, tasks: int = 1, samples: int | None = None
    ) -> list[Component]:
        """What it will cost, if no decoder has to start afresh."""
        return self._cost(dim, classes, tasks, 1)

    def _cost(self, dim: int, classes: int, tasks: int, decoders: int) -> list[Component]:
        return cost.vae(
            dim,
            classes,
            tasks,
            hidden=self.settings.hidden,
            latent=self.settings.latent,
            own_prior=not isinstance(self.prior, SinglePrior),
            classwise=self.settings.classwise,
            whitened=self.settings.whitened,
            factors=self.settings.factors,
            encoded=not self.settings.directions,
            null_space=self.settings.decoder == "null-space",
            dynamic=self.settings.dynamic,
            embedding=self.settings.embedding,
            decoders=decoders,
        )


class FactorVAEMemory(VAEMemory):
    """The same in whitened coordinates, with class factors and smaller networks.

    Parameters
    ----------
    **settings
        See :class:`frugalvae.memories.vae.settings.FactorSettings`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> memory = FactorVAEMemory(hidden=16, latent=4, epochs=5)
    >>> x = rng.normal(size=(20, 8)) + 9 * (np.arange(20)[:, None] % 2)
    >>> memory.learn(Task(x, np.arange(20) % 2), rng)
    >>> memory.log_density(x[:4]).argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """

    __signature__ = inspect.signature(FactorSettings)
    settings_type = FactorSettings
