"""VAE-FO, VAE-FOD, VAE-FODCE and VAE-CEO as memories, as the paper words them and as we run them.

:class:`VAESettings` turns names into the steps of :mod:`~frugalvae.paper.departures`, and
:class:`VAEMemory` adds to :class:`~frugalvae.paper.vae_fo.VAEFO` what every memory has: noise on
samples, records, forgetting and cost.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from frugalvae.errors import check_choice, check_number
from frugalvae.maths.arrays import Array, pack
from frugalvae.paper.departures import (
    CHANGES,
    DRAWS,
    INPUTS,
    SCHEDULES,
    DecoderPerTask,
    FreshDecoder,
    FrozenChange,
    LimitedTraining,
    Noise,
    WarmUp,
    noise_std,
    relative_posterior,
)
from frugalvae.paper.networks import MLP, layer_sizes, parameters
from frugalvae.paper.normalise import ClasswiseNormaliser, GlobalNormaliser, normalisation
from frugalvae.paper.nullspace import Change, Decoder, LayerInputs, OneDecoder
from frugalvae.paper.placement import Placement, Prior
from frugalvae.paper.priors import SinglePrior, make_prior, smallest_distance
from frugalvae.paper.records import LayerState, PriorState
from frugalvae.paper.vae_fo import VAEFO, Steps, bound, posterior
from frugalvae.parts.defaults import MemoryDefaults
from frugalvae.parts.protocols import Component, component, triangle
from frugalvae.parts.tensors import TensorTask, device_of, stack, to_array, to_generator


@dataclass(frozen=True, kw_only=True)
class VAESettings:
    """The settings of :class:`VAEMemory`: every variant and ablation of the paper, and ours.

    Parameters
    ----------
    prior
        Where class Gaussians stand: ``"fpi"`` (Eq. 5), ``"normal"``, ``"uniform"``,
        ``"single"`` (all at the origin), or an object of :mod:`frugalvae.paper.priors`.
    decoder
        How later tasks may change shared weights: in the ``"null-space"`` of the inputs of old
        classes, ``"free"``, or not at all (``"frozen"``).
    classwise
        Normalise each class separately; otherwise all classes by the first task's statistics.
    dynamic
        Give each task a last layer and biases of its own.
    embedding
        Length of the class embedding appended to each layer's input; 0 for none.
    hidden, latent
        Width of the hidden layers, and dimension of the latent space.
    epochs, batch_size, max_steps
        Passes over a task, samples per step, and the most steps, however many epochs that is.
    learning_rate, later_learning_rate
        Learning rates of Adam: for the encoder and an untrained decoder, and for a decoder
        that has learned a task.
    warm_up
        The share of the steps over which the weight of the divergence grows from 0 to 1.
    relative
        Whether the encoder describes samples relative to the centre of their class.
    schedule
        Whether learning rates rise and fall over a task (``"one-cycle"``) or are ``"constant"``.
    noise
        Standard deviation of the noise added to decoded samples, on the normalised scale.
        ``"match"`` gives samples the variance of their class.
    inputs
        Which layer inputs the null space protects: those of latents drawn from the ``"prior"``,
        of its means (``"prior-mean"``), of latents drawn from the ``"posterior"``, of its
        means, or averages over batches.
    max_proportion
        The largest R (Eq. 10) of a null space, instead of the paper's rule of 100.
    projection
        Project Adam's ``"update"``, which cannot leak, or the ``"gradient"``.
    on_saturation
        ``"warn"``, or start a ``"fresh"`` decoder for the next classes.

    Examples
    --------
    >>> VAESettings(decoder="frosen")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: decoder is 'frosen'. Did you mean 'frozen'? ...
    """

    prior: str | Prior = "fpi"
    decoder: Literal["null-space", "free", "frozen"] = "null-space"
    classwise: bool = True
    dynamic: bool = False
    embedding: int = 0
    hidden: int = 512
    latent: int = 256
    epochs: int = 500
    batch_size: int = 128
    max_steps: int = 500
    learning_rate: float = 1e-3
    later_learning_rate: float = 1e-3
    warm_up: float = 0.3
    relative: bool = True
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    noise: Noise = "match"
    inputs: Literal["prior", "prior-mean", "posterior", "posterior-mean", "batch-mean"] = (
        "prior-mean"
    )
    max_proportion: float | None = None
    projection: Literal["update", "gradient"] = "update"
    on_saturation: Literal["warn", "fresh"] = "warn"

    def __post_init__(self) -> None:
        check_choice("decoder", self.decoder, ("null-space", "free", "frozen"))
        check_choice("inputs", self.inputs, INPUTS)
        check_choice("projection", self.projection, CHANGES)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("on_saturation", self.on_saturation, ("warn", "fresh"))
        for name in ("classwise", "dynamic", "relative"):
            check_choice(name, getattr(self, name), (True, False))
        for name, least in (("hidden", 1), ("latent", 1), ("embedding", 0)):
            check_number(name, getattr(self, name), least, 8_192, whole=True)
        for name in ("learning_rate", "later_learning_rate"):
            check_number(name, getattr(self, name), 1e-12)
        if self.noise != "match":
            check_number("noise", self.noise, 0)
        if self.max_proportion is not None:
            check_number("max_proportion", self.max_proportion, 0, 1)
        _ = self.steps  # which check the rest

    @property
    def steps(self) -> Steps:
        """The steps of Algorithm 1 that these settings name."""
        null_space = LayerInputs.null_space
        if self.max_proportion is not None:
            null_space = partial(null_space, max_proportion=self.max_proportion)
        decoders = DecoderPerTask() if self.dynamic else OneDecoder()
        if self.on_saturation == "fresh":
            decoders = FreshDecoder(decoders, null_space)
        changes = {"null-space": CHANGES[self.projection], "free": Change, "frozen": FrozenChange}
        training = LimitedTraining(
            self.epochs,
            self.batch_size,
            relative_posterior if self.relative else posterior,
            WarmUp(self.warm_up) if self.warm_up else bound,
            SCHEDULES[self.schedule],
            self.max_steps,
        )
        return Steps(
            ClasswiseNormaliser if self.classwise else GlobalNormaliser,
            make_prior(self.prior),
            training,
            decoders,
            changes[self.decoder],
            INPUTS[self.inputs],
            null_space,
        )


class VAEMemory(VAEFO, MemoryDefaults):
    """One VAE for all classes, each with its own Gaussian in latent space.

    Parameters
    ----------
    **settings
        See :class:`VAESettings`.

    Attributes
    ----------
    means_, noise_
        Latent mean (latent,) of each class, and the standard deviation of its noise.
    decoders_, route_
        All decoders, and which of them each class uses.
    layers_, priors_
        Null spaces and placements after each task, for the record.

    Examples
    --------
    >>> from frugalvae.parts.protocols import Task
    >>> rng = np.random.default_rng(0)
    >>> memory = VAEMemory(hidden=16, latent=4, epochs=5)
    >>> memory.learn(Task(rng.normal(size=(20, 8)), np.arange(20) % 2), rng)
    >>> memory.learn(Task(rng.normal(size=(10, 8)), np.full(10, 2)), rng)
    >>> memory.sample(2, 3, rng).shape
    (3, 8)
    """

    holds_tensors = True
    __signature__ = inspect.signature(VAESettings)
    settings_type: type[VAESettings] = VAESettings

    def __init__(self, **settings: Any) -> None:
        self.settings = given = self.settings_type(**settings)
        super().__init__(
            hidden=given.hidden,
            latent=given.latent,
            embedding=given.embedding,
            learning_rate=given.learning_rate,
            later_learning_rate=given.later_learning_rate,
            steps=given.steps,
        )
        self.prior = given.steps.prior  # what a name stands for is recorded
        self.noise_: dict[int, Tensor] = {}
        self.layers_: list[LayerState] = []
        self.priors_: list[PriorState] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Synthetic features (count, d) of a class: decode draws from its Gaussian, add noise."""
        draws = to_generator(rng, device_of(self.means_))
        x_hat = self._decode(label, count, draws)  # (count, d)
        noise = self.noise_[label] * torch.empty_like(x_hat).normal_(generator=draws)
        return to_array(self.normaliser_.restore(label, x_hat + noise))

    def forget(self, label: int) -> list[str]:
        """Drop the class's Gaussian, statistics and embeddings; networks stay as they are."""
        row = list(self.means_).index(label)
        assert self.encoder_ is not None
        self.encoder_.drop_class(row)
        self.decoders_[-1].network.drop_class(row)  # all decoders share one set of tables
        del self.means_[label], self.noise_[label], self.route_[label]
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

    def _place_means(self, encoder: MLP, task: TensorTask, x: Tensor, rng: Generator) -> Placement:
        placement = super()._place_means(encoder, task, x, rng)
        means = stack(self.means_)
        how = placement.iterations, placement.residual, placement.converged
        where = smallest_distance(means), float(means.norm(dim=1).mean())
        state = PriorState(len(self.priors_) + 1, *how, *where)
        state.warn()
        self.priors_.append(state)
        return placement

    def _protect(
        self, encoder: MLP, decoder: Decoder, task: TensorTask, x: Tensor, rng: Generator
    ) -> None:
        for label in task.classes:  # drawn for any noise: memories that differ in it share the rest
            decoded = self._decode(label, DRAWS, rng)  # (DRAWS, d)
            real = x[task.labels == label]
            self.noise_[label] = noise_std(real, decoded, self.settings.noise)
        super()._protect(encoder, decoder, task, x, rng)
        self._drop_unused_decoders()
        for layer, space in enumerate(self._null_spaces(decoder), start=1):
            where = len(self.priors_), len(self.decoders_), layer
            self.layers_.append(LayerState(*where, space.rank, space.size, space.proportion))
            if self.settings.on_saturation == "warn":
                self.layers_[-1].warn()

    # ----------------------------------------------------------------------- cost

    def arrays(self) -> dict[str, Array]:
        """Networks, sums of layer inputs, and what is kept per class."""
        kept = {"noise": stack(self.noise_)}
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
        dim = self.decoders_[0].network.linears[-1].out_features
        return self.cost(dim, len(self.means_), tasks, decoders=trunks)

    def cost(
        self,
        dim: int,
        classes: int,
        tasks: int = 1,
        samples: int | None = None,
        *,
        decoders: int = 1,
    ) -> list[Component]:
        """What it will cost; ``decoders``: after fresh starts, each with covariances of its own."""
        hidden, latent = self.hidden, self.latent
        encoder = layer_sizes([dim, hidden, hidden, 2 * latent], self.embedding)
        decoder = layer_sizes([latent, hidden, hidden, dim], self.embedding)
        last, biases = decoder[-1], sum(n_out for _, n_out in decoder)
        shared = decoder[:-1] if self.settings.dynamic else decoder
        in_null_space = [n_in for n_in, _ in shared] if self.steps.change.protects else []
        parts = [
            component("encoder", parameters(encoder)),
            component("decoder", decoders * parameters(decoder)),
            component(
                "covariances",
                decoders * sum(size**2 for size in in_null_space),
                decoders * sum(triangle(size) for size in in_null_space),
                width=8,
            ),
        ]
        if self.settings.dynamic:
            own = last[0] * last[1] + biases
            parts.append(component("task layers", (tasks - decoders) * own))
        if self.embedding:
            tables = len(encoder) + len(decoder)
            parts.append(component("class embeddings", tables * self.embedding * classes))
        if not isinstance(self.prior, SinglePrior):
            parts.append(component("latent means", classes * latent))
        parts.append(normalisation(dim, classes, self.settings.classwise))
        parts.append(component("sample noise", 0, classes))
        return [part for part in parts if part.stored]


@dataclass(frozen=True, kw_only=True)
class LiteralSettings(VAESettings):
    """Settings with other defaults: every choice of ``DEPARTURES`` as the paper words it.

    >>> LiteralSettings().schedule
    'constant'
    """

    prior: str | Prior = "fpi-literal"
    max_steps: int = 1_000_000  # 500 epochs, however many steps these are
    learning_rate: float = 5e-4
    later_learning_rate: float = 5e-5
    schedule: Literal["one-cycle", "constant"] = "constant"
    warm_up: float = 0.0
    relative: bool = False
    noise: Noise = 0.0
    inputs: Literal["prior", "prior-mean", "posterior", "posterior-mean", "batch-mean"] = (
        "posterior"
    )
    projection: Literal["update", "gradient"] = "gradient"


class LiteralVAEMemory(VAEMemory):
    """The paper's VAE with every choice as the paper words it, which takes minutes.

    Parameters
    ----------
    **settings
        See :class:`LiteralSettings`.

    Examples
    --------
    >>> memory = LiteralVAEMemory(epochs=20)
    >>> memory.settings.projection, VAEMemory().settings.projection
    ('gradient', 'update')
    """

    __signature__ = inspect.signature(LiteralSettings)
    settings_type = LiteralSettings
