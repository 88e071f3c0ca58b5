"""The paper's memory: one conditional VAE that learns task after task.

:meth:`VAEMemory.learn` is Algorithm 1 of the paper, line by line, up to the
classifier. Its settings make every variant and every ablation of the paper.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from frugalvae import accounting
from frugalvae.accounting import Component
from frugalvae.equations import reparametrise
from frugalvae.errors import ConvergenceWarning, SaturationWarning, check_choice
from frugalvae.memories.decoder import Decoder, Projection, Update, fresh_decoder
from frugalvae.networks import MLP
from frugalvae.normalise import make_normaliser, stack
from frugalvae.priors import Prior, SinglePrior, make_prior, smallest_distance
from frugalvae.symmetric import pack
from frugalvae.tasks import Task
from frugalvae.training import Batch, Training, encode, missing_spread, train_vae

logger = logging.getLogger(__name__)

LayerSource = Literal["prior", "prior-mean", "posterior", "posterior-mean", "batch-mean"]


@dataclass(frozen=True)
class LayerState:
    """The null space of one layer after a task: what the next task can use.

    Attributes
    ----------
    task, decoder, layer
        Which, all counted from 1.
    rank, size
        Free directions, and the layer's input dimension.
    proportion
        R of Eq. 10.
    """

    task: int
    decoder: int
    layer: int
    rank: int
    size: int
    proportion: float


@dataclass(frozen=True)
class PriorState:
    """How a task's class means were placed."""

    task: int
    iterations: int
    residual: float
    converged: bool
    smallest_distance: float
    mean_radius: float


class VAEMemory:
    """One VAE for all classes, each with its own Gaussian in latent space.

    Parameters
    ----------
    prior
        Where class Gaussians stand: ``"fpi"`` (Eq. 5), ``"normal"``, ``"uniform"``,
        ``"single"`` (all at the origin), or a prior made with settings.
    decoder
        What later tasks may do to shared weights: move in the ``"null-space"`` of
        what old classes feed each layer, move ``"free"``, or stay ``"frozen"``.
    classwise
        Normalise every class by itself; otherwise all alike, by the first task.
    dynamic
        Give each task its own last layer and biases.
    embedding
        Length of the class embeddings appended to each layer's input; 0 for none.
    hidden, latent
        Width of the hidden layers, and of the latent space.
    epochs, batch_size, max_steps
        Length of training; see :class:`frugalvae.training.Training`.
    learning_rate, later_learning_rate
        Adam's, for the encoder and an untrained decoder; and for a decoder that
        already knows something.
    warm_up, likelihood_std, relative
        See :class:`frugalvae.training.Training`.
    noise
        Standard deviation of what is added to decoded samples, on the normalised
        scale. ``"match"`` takes what they lack of the spread of the class.
    inputs
        What the null space must protect: layer inputs made from latents drawn
        from the ``"prior"`` (what replay feeds the decoder), from the prior's
        means, from the ``"posterior"``, from its means, or averaged over batches.
    ratio, max_proportion
        Which directions count as null; see :meth:`LayerInputs.null_space`.
    projection
        Project Adam's ``"update"``, which cannot leak, or the ``"gradient"``.
    saturation
        R above which, and ``min_free`` the part of directions below which, a
        layer's null space counts as used up.
    on_saturation
        ``"warn"``, or start a ``"fresh"`` decoder for the classes to come.

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
    >>> rng = torch.Generator().manual_seed(0)
    >>> memory = VAEMemory(hidden=16, latent=4, epochs=5)
    >>> memory.learn(Task(torch.randn(20, 8, generator=rng), torch.arange(20) % 2), rng)
    >>> memory.learn(Task(torch.randn(10, 8, generator=rng), torch.full((10,), 2)), rng)
    >>> memory.sample(2, 3, rng).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        *,
        prior: str | Prior = "fpi",
        decoder: Update = "null-space",
        classwise: bool = True,
        dynamic: bool = False,
        embedding: int = 0,
        hidden: int = 512,
        latent: int = 256,
        epochs: int = 500,
        batch_size: int = 128,
        max_steps: int = 500,
        learning_rate: float = 1e-3,
        later_learning_rate: float = 1e-3,
        warm_up: float = 0.3,
        likelihood_std: float = 1.0,
        relative: bool = True,
        noise: float | Literal["match"] = "match",
        inputs: LayerSource = "prior-mean",
        ratio: float = 100.0,
        max_proportion: float | None = None,
        projection: Projection = "update",
        saturation: float = 0.05,
        min_free: float = 0.05,
        on_saturation: Literal["warn", "fresh"] = "warn",
    ) -> None:
        check_choice("decoder", decoder, get_args(Update))
        check_choice("inputs", inputs, get_args(LayerSource))
        check_choice("projection", projection, get_args(Projection))
        check_choice("on_saturation", on_saturation, ("warn", "fresh"))
        self.prior = make_prior(prior)
        self.decoder = decoder
        self.classwise = classwise
        self.dynamic = dynamic
        self.embedding = embedding
        self.hidden = hidden
        self.latent = latent
        self.learning_rate = learning_rate
        self.later_learning_rate = later_learning_rate
        self.training = Training(epochs, batch_size, max_steps, warm_up, likelihood_std, relative)
        self.noise = noise
        self.inputs = inputs
        self.ratio = ratio
        self.max_proportion = max_proportion
        self.projection = projection
        self.saturation = saturation
        self.min_free = min_free
        self.on_saturation = on_saturation

        self.normaliser_ = make_normaliser(classwise)
        self.encoder_: MLP | None = None
        self.decoders_: list[Decoder] = []
        self.route_: dict[int, int] = {}
        self.means_: dict[int, Tensor] = {}
        self.noise_: dict[int, Tensor] = {}
        self.layers_: list[LayerState] = []
        self.priors_: list[PriorState] = []

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return list(self.means_)

    def learn(self, task: Task, rng: torch.Generator) -> None:
        """Algorithm 1: place the Gaussians, train, update the null spaces."""
        self.normaliser_.learn(task)
        x = self._normalised(task)
        encoder = self._encoder_for(task, rng)
        decoder = self._decoder_for(task, rng)
        self._place_priors(task, x, rng)
        data = self._batch(task, x)

        spaces = decoder.null_spaces(self.ratio, self.max_proportion) if decoder.tasks else []
        freedom = decoder.freedom(self.decoder, spaces, self.dynamic, self.projection)
        rate = self.later_learning_rate if decoder.tasks else self.learning_rate
        groups = [
            {"params": list(encoder.parameters()), "lr": self.learning_rate},
            {"params": freedom.parameters, "lr": rate},
        ]
        train_vae(
            encoder,
            decoder.network,
            data,
            groups,
            self.training,
            rng,
            freedom.after_backward,
            freedom.after_step,
        )

        self._match_noise(task, x, rng)
        decoder.remember(*self._latents_to_protect(task, data, rng))
        decoder.tasks += 1
        self._record_saturation(decoder)

    def sample(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        """Decode draws from the class's Gaussian, and add what they lack of its spread."""
        x = self._decode(label, count, rng)
        noise = self.noise_[label] * torch.empty_like(x).normal_(generator=rng)
        return self.normaliser_.restore(label, x + noise)

    @torch.no_grad()
    def _decode(self, label: int, count: int, rng: torch.Generator) -> Tensor:
        mean = self.means_[label]
        z = mean + torch.empty(count, self.latent, device=mean.device).normal_(generator=rng)
        network = self.decoders_[self.route_[label]].network
        decoded: Tensor = network(z, self._rows([label] * count))
        return decoded

    def _normalised(self, task: Task) -> Tensor:
        x = torch.empty_like(task.features)
        for label in task.classes:
            x[task.labels == label] = self.normaliser_.normalise(label, task.of(label))
        return x

    def _encoder_for(self, task: Task, rng: torch.Generator) -> MLP:
        """The encoder goes on from where it is, with embeddings for the new classes."""
        if self.encoder_ is None:
            sizes = [task.features.shape[1], self.hidden, self.hidden, 2 * self.latent]
            self.encoder_ = MLP(sizes, self.embedding, rng=rng)
        self.encoder_.add_classes(len(task.classes), rng)
        return self.encoder_

    def _decoder_for(self, task: Task, rng: torch.Generator) -> Decoder:
        """The decoder to train: the last one, a fork of it, or a fresh one."""
        fresh = not self.decoders_ or (self.on_saturation == "fresh" and bool(self.saturated_))
        if fresh:
            sizes = [self.latent, self.hidden, self.hidden, task.features.shape[1]]
            protect = 0 if self.decoder != "null-space" else len(sizes) - 1 - self.dynamic
            decoder = fresh_decoder(sizes, self.embedding, protect, rng)
            if self.decoders_:  # a class uses one decoder only: one set of tables serves all
                decoder.network.tables = self.decoders_[-1].network.tables
        else:
            decoder = self.decoders_[-1].fork() if self.dynamic else self.decoders_[-1]
        if fresh or self.dynamic:
            self.decoders_.append(decoder)
        decoder.network.add_classes(len(task.classes), rng)
        self.route_ |= dict.fromkeys(task.classes, len(self.decoders_) - 1)
        return decoder

    @torch.no_grad()
    def _place_priors(self, task: Task, x: Tensor, rng: torch.Generator) -> None:
        """Algorithm 1: class means, then the fixed-point iteration over them."""
        assert self.encoder_ is not None
        origin = x.new_zeros(self.latent)
        self.means_ |= dict.fromkeys(task.classes, origin)
        mu, _ = encode(self.encoder_, self._batch(task, x), relative=False)
        latent_means = torch.stack([mu[task.labels == y].mean(dim=0) for y in task.classes])
        old = [mean for label, mean in self.means_.items() if label not in task.classes]
        fixed = torch.stack(old) if old else latent_means.new_empty(0, self.latent)
        placement = self.prior.place(latent_means, fixed, rng)
        self.means_ |= dict(zip(task.classes, placement.means, strict=True))
        means = stack(self.means_)
        self.priors_.append(
            PriorState(
                len(self.priors_) + 1,
                placement.iterations,
                placement.residual,
                placement.converged,
                smallest_distance(means),
                float(means.norm(dim=1).mean()),
            )
        )
        if not placement.converged:
            warnings.warn(
                f"the fixed-point iteration stopped after {placement.iterations} steps with a "
                f"residual of {placement.residual:.1e}; raise max_iterations or lower damping",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _batch(self, task: Task, x: Tensor) -> Batch:
        labels = task.labels.tolist()
        prior_means = torch.stack([self.means_[label] for label in labels])
        return Batch(x, prior_means, self._rows(labels))

    def _rows(self, labels: list[int]) -> Tensor | None:
        """Position of each label's class in the embedding tables."""
        if not self.embedding:
            return None
        position = {label: row for row, label in enumerate(self.means_)}
        device = next(iter(self.means_.values())).device
        return torch.tensor([position[label] for label in labels], device=device)

    def _match_noise(self, task: Task, x: Tensor, rng: torch.Generator) -> None:
        for label in task.classes:
            decoded = self._decode(label, DRAWS, rng)
            self.noise_[label] = missing_spread(x[task.labels == label], decoded, self.noise)

    @torch.no_grad()
    def _posterior(self, data: Batch, rng: torch.Generator, *, mean: bool = False) -> Tensor:
        assert self.encoder_ is not None
        mu, sigma = encode(self.encoder_, data, self.training.relative)
        return mu if mean else reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))

    def _latents_to_protect(
        self, task: Task, data: Batch, rng: torch.Generator
    ) -> tuple[Tensor, Tensor | None, int]:
        """Latents, their embedding rows, and how many inputs to average over."""
        if self.inputs == "posterior":
            return self._posterior(data, rng), data.rows, 1
        if self.inputs == "posterior-mean":
            return self._posterior(data, rng, mean=True), data.rows, 1
        if self.inputs == "batch-mean":
            order = torch.randperm(len(data), generator=rng, device=rng.device)
            shuffled = data[order]
            return self._posterior(shuffled, rng), shuffled.rows, self.training.batch_size
        count = 1 if self.inputs == "prior-mean" else DRAWS
        labels = [label for label in task.classes for _ in range(count)]
        z = torch.stack([self.means_[label] for label in labels])
        if self.inputs == "prior":
            z = z + torch.empty_like(z).normal_(generator=rng)
        return z, self._rows(labels), 1

    def _record_saturation(self, decoder: Decoder) -> None:
        task, number = len(self.priors_), len(self.decoders_)
        for layer, space in enumerate(decoder.null_spaces(self.ratio, self.max_proportion), 1):
            state = LayerState(task, number, layer, space.rank, space.size, space.proportion)
            self.layers_.append(state)
        for state in self.saturated_:
            logger.info("saturated: %s", state)
            warnings.warn(
                f"after task {task}, layer {state.layer} of the decoder has {state.rank} of "
                f"{state.size} directions free and R = {state.proportion:.3f}: learning more "
                "will disturb old classes or fail; on_saturation='fresh' starts a new decoder",
                SaturationWarning,
                stacklevel=3,
            )

    @property
    def saturated_(self) -> list[LayerState]:
        """Layers whose null space is used up, as of the last task."""
        return [
            state
            for state in self.layers_
            if state.task == len(self.priors_)
            and (state.proportion > self.saturation or state.rank < self.min_free * state.size)
        ]

    def tensors(self) -> dict[str, Tensor]:
        """Networks, covariances, and what is kept of each class."""
        kept = self.normaliser_.tensors() | {"noise": stack(self.noise_)}
        if not isinstance(self.prior, SinglePrior):
            kept["means"] = stack(self.means_)
        if self.encoder_ is not None:
            kept |= {f"encoder.{key}": value for key, value in self.encoder_.state_dict().items()}
        seen: set[int] = set()
        for number, decoder in enumerate(self.decoders_):
            for key, value in decoder.network.named_parameters(f"decoder.{number}"):
                if id(value) not in seen:  # forks share their trunk
                    seen.add(id(value))
                    kept[key] = value.detach()
            for layer, inputs in enumerate(decoder.inputs):
                if id(inputs) not in seen:
                    seen.add(id(inputs))
                    kept[f"inputs.{number}.{layer}"] = pack(inputs.sum_)
        return kept

    def components(self) -> list[Component]:
        """Networks, covariances, and what is kept of each class."""
        if self.encoder_ is None:
            return []
        return accounting.vae(
            self.encoder_.linears[0].in_features - self.embedding,
            len(self.means_),
            len(self.priors_),
            hidden=self.hidden,
            latent=self.latent,
            own_prior=not isinstance(self.prior, SinglePrior),
            classwise=self.classwise,
            null_space=self.decoder == "null-space",
            dynamic=self.dynamic,
            embedding=self.embedding,
            decoders=len({id(decoder.network.linears[0].weight) for decoder in self.decoders_}),
        )


DRAWS = 256  # samples of a class from which statistics are estimated
