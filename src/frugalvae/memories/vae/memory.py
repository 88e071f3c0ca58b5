"""The paper's VAE as a memory, with our additions.

===========================================  ====================================
whitened coordinates                         :mod:`frugalvae.memories.vae.whitened`
class directions, added or taught            :mod:`frugalvae.memories.vae.residual`
a new decoder when null spaces are used up   :mod:`frugalvae.memories.vae.records`
densities                                    :mod:`frugalvae.memories.vae.density`
===========================================  ====================================

All are off by default: :class:`VAEMemory` is then exactly the paper's
:class:`~frugalvae.memories.vae.paper.IncrementalVAE`.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from frugalvae import cost
from frugalvae.cost import Component
from frugalvae.maths.arrays import Array
from frugalvae.maths.gaussians import SHRINKAGE, Shrinkage
from frugalvae.maths.latent_priors import Placement, SinglePrior, smallest_distance
from frugalvae.maths.symmetric import pack
from frugalvae.maths.training import Batch
from frugalvae.memories.defaults import MemoryDefaults
from frugalvae.memories.vae.decoder import Decoder
from frugalvae.memories.vae.density import LocalDecoder
from frugalvae.memories.vae.paper import IncrementalVAE
from frugalvae.memories.vae.records import LayerState, PriorState
from frugalvae.memories.vae.residual import (
    class_directions,
    linear_maps,
    noise_std,
    teach_directions,
)
from frugalvae.memories.vae.settings import FactorSettings, LiteralSettings, VAESettings
from frugalvae.memories.vae.whitened import WhitenedNormaliser, change_coordinates
from frugalvae.tensors import TensorTask, device_of, stack, to_array, to_tensor

MIN_NOISE = 1e-3  # of a density: without noise, most samples would have density zero


class VAEMemory(IncrementalVAE, MemoryDefaults):
    """One VAE for all classes, each with its own Gaussian in latent space.

    Parameters
    ----------
    **settings
        See :class:`frugalvae.memories.vae.settings.VAESettings`.

    Attributes
    ----------
    means_, noise_
        Latent mean (latent,) of each class, and the standard deviation of its noise.
    factors_
        Class directions (d, factors) of each class.
    decoders_, route_
        All decoders, and which of them each class uses.
    layers_, priors_
        Null spaces and placements after each task, for the record.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.interfaces import Task
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
    settings: VAESettings

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.settings.whitened:
            self.normaliser_ = WhitenedNormaliser(self.settings.ridge)
        self.factors_: dict[int, Tensor] = {}
        self.layers_: list[LayerState] = []
        self.priors_: list[PriorState] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def forget(self, label: int) -> list[str]:
        """Drop the class's Gaussian, statistics and embeddings; networks stay as they are."""
        row = list(self.means_).index(label)
        if self.encoder_ is not None:
            self.encoder_.drop_class(row)
        self.decoders_[-1].network.drop_class(row)  # all decoders share one set of tables
        del self.means_[label], self.noise_[label], self.route_[label]
        self.factors_.pop(label, None)
        self._drop_unused_decoders()
        remains = ["the weights of encoder and decoder were trained on it and are unchanged"]
        if self.settings.decoder == "null-space":
            remains.append("the decoder's null space still protects its layer inputs")
        return remains + self.normaliser_.forget(label)

    def _drop_unused_decoders(self) -> None:
        """Drop decoders without classes, except the last, from which the next one starts."""
        used = sorted({*self.route_.values(), len(self.decoders_) - 1})
        self.decoders_ = [self.decoders_[number] for number in used]
        self.route_ = {label: used.index(number) for label, number in self.route_.items()}

    # ----------------------------------------------------------------------- records

    def _place_priors(self, task: TensorTask, x: Tensor, rng: torch.Generator) -> Placement:
        placement = super()._place_priors(task, x, rng)
        means = stack(self.means_)
        how = placement.iterations, placement.residual, placement.converged
        where = smallest_distance(means), float(means.norm(dim=1).mean())
        state = PriorState(len(self.priors_) + 1, *how, *where)
        state.warn()
        self.priors_.append(state)
        return placement

    def _update_null_spaces(
        self, decoder: Decoder, task: TensorTask, x: Tensor, rng: torch.Generator
    ) -> None:
        super()._update_null_spaces(decoder, task, x, rng)
        self._drop_unused_decoders()
        for layer, space in enumerate(self._null_spaces(decoder), start=1):
            where = len(self.priors_), len(self.decoders_), layer
            self.layers_.append(LayerState(*where, space.rank, space.size, space.proportion))
        if self.settings.on_saturation == "warn":
            for state in self.saturated_:
                state.warn()

    # ----------------------------------------------------------------------- saturation

    @property
    def saturated_(self) -> list[LayerState]:
        """The layers whose null space is saturated after the last task."""
        last = [state for state in self.layers_ if state.task == len(self.priors_)]
        return [state for state in last if state.is_saturated(self.settings.thresholds)]

    def _needs_new_decoder(self) -> bool:
        fresh = self.settings.on_saturation == "fresh" and bool(self.saturated_)
        return super()._needs_new_decoder() or fresh

    def _new_decoder(self, dim: int, rng: torch.Generator) -> Decoder:
        decoder = super()._new_decoder(dim, rng)
        if self.decoders_:  # a class uses one decoder only, so one set of tables serves all
            decoder.network.tables = self.decoders_[-1].network.tables
        return decoder

    # ----------------------------------------------------------------------- whitened coordinates

    def _learn_normaliser(self, task: TensorTask) -> None:
        change = self.normaliser_.learn(task)
        if change is not None:
            change_coordinates(change, self.decoders_, self.factors_, self.encoder_)

    def _decode(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        x_hat = super()._decode(label, count, rng)  # (count, d)
        return x_hat - self._decoded_mean(label) if self.settings.whitened else x_hat

    @torch.no_grad()
    def _decoded_mean(self, label: int) -> Tensor:
        """What the class's latent mean is decoded to, (1, d)."""
        return self._network(label)(self.means_[label][None], self._rows([label]))

    # ----------------------------------------------------------------------- class directions

    def _fit_residual(self, label: int, real: Tensor, decoded: Tensor) -> None:
        directions, spread = None, self.normaliser_.spread().to(real)  # (d,) or ()
        if self.settings.factors:
            expanded = spread.expand(real.shape[1])
            directions = class_directions(real, decoded, expanded, self.settings.factors)
            self.factors_[label] = directions
        self.noise_[label] = noise_std(real, decoded, self.settings.noise, directions, spread)

    def _draw_residual(self, label: int, x_hat: Tensor, rng: torch.Generator) -> Tensor:
        noise = super()._draw_residual(label, x_hat, rng) * self.normaliser_.spread().to(x_hat)
        if not self.settings.factors:
            return noise
        directions = self.factors_[label]  # (d, factors)
        shape = len(x_hat), directions.shape[1]
        return noise + x_hat.new_empty(shape).normal_(generator=rng) @ directions.T

    # ----------------------------------------------------------------------- taught directions

    def _prepare_encoder(self, task: TensorTask, rng: torch.Generator) -> None:
        if not self.settings.directions:
            super()._prepare_encoder(task, rng)

    def _encode(self, task: TensorTask, x: Tensor) -> Tensor:
        if self.encoder_ is None:  # all classes start at the origin, and only repel each other
            return x.new_zeros(len(x), self.settings.latent)
        return super()._encode(task, x)

    def _train(self, decoder: Decoder, task: TensorTask, x: Tensor, rng: torch.Generator) -> None:
        if self.encoder_ is not None:
            super()._train(decoder, task, x, rng)
            return
        rule, rate = self._update_rule(decoder)
        if not rule.parameters:
            return
        spread = self.normaliser_.spread().expand(x.shape[1])
        count = min(self.settings.directions, self.settings.latent)
        classes = [x[task.labels == label] for label in task.classes]
        maps = linear_maps(classes, spread, count)  # (k, count, d)
        means = torch.stack([self.means_[label] for label in task.classes])  # (k, latent)
        data = Batch(maps, means, self._rows(task.classes))
        teach_directions(decoder.network, data, rule, rate, self.settings.training, rng)

    # ----------------------------------------------------------------------- density

    @property
    def density_width(self) -> int:
        """The feature dimension."""
        return self.decoders_[0].network.linears[-1].out_features

    @torch.no_grad()
    def log_density(
        self, features: Array, shrinkage: Shrinkage = SHRINKAGE, *, draws: int = 8
    ) -> Array:
        """Log density of each class at each row, (n, k), classes in the order of :attr:`classes`.

        An importance-weighted bound by ``draws`` latents, always the same ones. With none, each
        decoder is linearised at the class's latent mean, which is many times as fast. The
        setting ``share`` takes the place of ``shrinkage``, which is not used.
        """
        x = to_tensor(features, device_of(self.means_))  # (n, d)
        rng = torch.Generator().manual_seed(0)
        z = torch.empty(draws, self.settings.latent).normal_(generator=rng).to(x)
        columns, prepared = [], self.normaliser_.prepare(x)
        for label in self.means_:
            density = self._class_log_density(label, self.normaliser_.finish(label, prepared), z)
            columns.append(density + self.normaliser_.log_volume(label, x))
        return to_array(torch.stack(columns, dim=1).double())

    def _class_log_density(self, label: int, x: Tensor, draws: Tensor) -> Tensor:
        """Log density (n,) of normalised samples x (n, d) under one class."""
        noise = 1.0
        if not self.settings.whitened:  # if so, x is centred already, in units of the noise
            x, noise = x - self._decoded_mean(label), max(float(self.noise_[label]), MIN_NOISE)
        directions = self.factors_.get(label, x.new_zeros(x.shape[1], 0))
        network, mean, row = self._network(label), self.means_[label], self._rows([label])
        local = LocalDecoder.around(network, mean, row, self.settings.share, directions, noise)
        return local.log_density(x, draws)

    # ----------------------------------------------------------------------- cost

    def arrays(self) -> dict[str, Array]:
        """Networks, sums of layer inputs, and what is kept per class."""
        kept = {"noise": stack(self.noise_)}
        if self.settings.factors:
            kept["factors"] = stack(self.factors_)
        if not isinstance(self.prior, SinglePrior):
            kept["means"] = stack(self.means_)
        if self.encoder_ is not None:
            kept |= {f"encoder.{key}": value for key, value in self.encoder_.state_dict().items()}
        seen: set[int] = set()  # decoders share parameters and sums
        sums = {}
        for number, decoder in enumerate(self.decoders_):
            for key, value in decoder.network.named_parameters(f"decoder.{number}"):
                if id(value) not in seen:
                    kept[key] = value
            for layer, inputs in enumerate(decoder.inputs):
                if id(inputs) not in seen:
                    sums[f"inputs.{number}.{layer}"] = pack(to_array(inputs.sum_))
            seen |= {id(part) for part in (*decoder.network.parameters(), *decoder.inputs)}
        found = {name: to_array(tensor) for name, tensor in kept.items()}
        return self.normaliser_.arrays() | found | sums

    def components(self) -> list[Component]:
        """Networks, sums of layer inputs, and what is kept per class."""
        if not self.decoders_:
            return []
        trunks = len({id(decoder.network.linears[0].weight) for decoder in self.decoders_})
        tasks = len(self.decoders_)  # if dynamic, as many as there are tasks in use
        return self.cost(self.density_width, len(self.means_), tasks, decoders=trunks)

    def cost(
        self,
        dim: int,
        classes: int,
        tasks: int = 1,
        samples: int | None = None,
        *,
        decoders: int = 1,
    ) -> list[Component]:
        """What it will cost, with one decoder if no null space saturates."""
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


class LiteralVAEMemory(VAEMemory):
    """The paper's VAE with every choice as the paper words it, which takes minutes.

    Parameters
    ----------
    **settings
        See :class:`frugalvae.memories.vae.settings.LiteralSettings`.

    Examples
    --------
    >>> memory = LiteralVAEMemory(epochs=20)
    >>> memory.settings.projection, VAEMemory().settings.projection
    ('gradient', 'update')
    """

    __signature__ = inspect.signature(LiteralSettings)
    settings_type = LiteralSettings


class FactorVAEMemory(VAEMemory):
    """An incremental VAE in whitened coordinates, with class directions.

    Parameters
    ----------
    **settings
        See :class:`frugalvae.memories.vae.settings.FactorSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.interfaces import Task
    >>> rng = np.random.default_rng(0)
    >>> memory = FactorVAEMemory(hidden=16, latent=4, epochs=5)
    >>> x = rng.normal(size=(20, 8)) + 9 * (np.arange(20)[:, None] % 2)
    >>> memory.learn(Task(x, np.arange(20) % 2), rng)
    >>> memory.log_density(x[:4]).argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """

    __signature__ = inspect.signature(FactorSettings)
    settings_type = FactorSettings
