"""VAE-FO: Algorithm 1 of the paper, from features to samples, as the paper words it.

"Frugal Incremental Generative Modeling using Variational Autoencoders" (Enescu and Sahbi).
Start at :meth:`VAEFO.learn`, which is the body of the algorithm's loop.

==========================================  =======================================
Algorithm 1                                 here
==========================================  =======================================
initialise encoder and decoder              ``VAEFO._prepare``
means of the classes; do FPI while ‖ΔM‖>ε   ``VAEFO._place_means``, :class:`FixedPoint` (Eq. 5)
train encoder and decoder                   ``VAEFO._train``, :func:`train` (Eqs. 2, 6, 7)
update the eigenvectors of each layer       ``VAEFO._protect``; ``_null_spaces`` (Eqs. 8, 9)
x ~ decoder(z), z ~ N(mu_y, I)              :meth:`VAEFO.sample`
adapt CLIP on them (Eq. 3)                  ``paper/prompts.py``, ``parts/cosine.py``
==========================================  =======================================

Equations are functions of ``equations.py``, and what a later task may change is ``nullspace.py``.
Steps that ``departures.py`` has others for are the fields of :class:`Steps` and :class:`Training`.

Shapes: n samples of k new classes, d features, ``latent`` dimensions, ``old`` earlier classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import ConstantLR, LRScheduler

from frugalvae.console import track
from frugalvae.maths.arrays import Array
from frugalvae.paper.equations import conditional_elbo, fixed_point_step, reparametrise
from frugalvae.paper.networks import MLP
from frugalvae.paper.normalise import ClasswiseNormaliser, Normaliser
from frugalvae.paper.nullspace import (
    Change,
    Decoder,
    LayerInputs,
    NullSpace,
    OneDecoder,
    ProjectedGradient,
)
from frugalvae.paper.placement import Anderson, Placement, Prior
from frugalvae.parts.protocols import Task
from frugalvae.parts.tensors import TensorTask, batches, device_of, to_array, to_generator

LOG_SIGMA_RANGE = (-7.0, 4.0)  # keeps exp() finite whatever an untrained encoder answers

# --------------------------------------------------------------------------- class means, Eq. 5


@dataclass(frozen=True)
class FixedPoint:
    """Eq. 5, iterated until the means stay.

    As written, it nearly alternates between two points, so a part of each step is taken, and
    Anderson acceleration finds the same fixed point sooner. Coincident means cannot repel each
    other, so all start with a tiny random offset.
    """

    weight: float = 900.0  # lambda
    damping: float = 0.5  # the share of each step that is taken
    history: int = 8  # earlier steps that the acceleration uses
    tolerance: float = 1e-5  # of the relative change of the means: epsilon
    max_iterations: int = 3000

    def place(self, latent_means: Tensor, fixed: Tensor, rng: Generator) -> Placement:
        """Iterate in float64 from the means of the latents; those in ``fixed`` never move."""
        target, old = latent_means.double(), fixed.double()  # (k, latent), (old, latent)
        weight = self.weight_among(len(target) + len(old))
        means = target + 1e-3 * torch.empty_like(target).normal_(generator=rng)  # (k, latent)
        stepping = Anderson(self.damping, self.history)
        iterations, residual = 0, float("inf")
        while residual >= self.tolerance and iterations < self.max_iterations:
            change = fixed_point_step(target, means, weight, old) - means  # (k, latent)
            means = stepping.next(means, change)  # (k, latent)
            residual = float(change.norm() / means.norm().clamp(min=1e-12))
            iterations += 1
        means = means.to(latent_means.dtype)
        return Placement(means, iterations, residual, residual < self.tolerance)

    def weight_among(self, classes: int) -> float:
        """What the sum of Eq. 5 is multiplied by: lambda; a departure divides it by classes."""
        return self.weight


# --------------------------------------------------------------------------- training, Eqs. 2 and 6


@dataclass(frozen=True)
class Batch:
    """Samples with what the networks must know of their classes."""

    x: Tensor  # normalised features, (n, d)
    prior_means: Tensor  # mu_y of each sample's class, (n, latent)
    rows: Tensor | None = None  # where the embedding of its class is, (n,), if classes have any

    def __getitem__(self, chosen: Tensor) -> Batch:
        rows = None if self.rows is None else self.rows[chosen]
        return Batch(self.x[chosen], self.prior_means[chosen], rows)


def posterior(encoder: MLP, data: Batch) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of q(z | x, y), (n, latent) each."""
    mu, log_sigma = encoder(data.x, data.rows).chunk(2, dim=1)  # (n, latent) each
    return mu, log_sigma.clamp(*LOG_SIGMA_RANGE).exp()


def bound(data: Batch, x_hat: Tensor, mu: Tensor, sigma: Tensor, _progress: float) -> Tensor:
    """Eq. 6 of each sample, (n,), however much of the training is done."""
    return conditional_elbo(data.x, x_hat, mu, sigma, data.prior_means)


def constant(optimiser: Optimizer, _steps: int) -> LRScheduler:
    """One learning rate for all steps."""
    return ConstantLR(optimiser, factor=1.0)


@dataclass(frozen=True)
class Training:
    """How encoder and decoder are trained."""

    epochs: int = 500
    batch_size: int = 128
    posterior: Callable[[MLP, Batch], tuple[Tensor, Tensor]] = posterior
    bound: Callable[[Batch, Tensor, Tensor, Tensor, float], Tensor] = bound
    schedule: Callable[[Optimizer, int], LRScheduler] = constant

    def steps_for(self, count: int) -> int:
        """The number of steps for a task of ``count`` samples."""
        return self.epochs * max(1, round(count / self.batch_size))

    def loss(
        self, encoder: MLP, decoder: MLP, data: Batch, progress: float, rng: Generator
    ) -> Tensor:
        """Minus Eq. 6, averaged over a batch, when ``progress`` of the steps is done."""
        mu, sigma = self.posterior(encoder, data)  # (n, latent) each
        z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))  # (n, latent)
        x_hat = decoder(z, data.rows)  # (n, d)
        return -self.bound(data, x_hat, mu, sigma, progress).mean()


def train(
    encoder: MLP,
    change: Change,
    data: Batch,
    training: Training,
    rates: tuple[float, float],
    rng: Generator,
) -> None:
    """Maximise Eq. 6 over the encoder and what may change in the decoder, at their two rates."""
    parts = zip((list(encoder.parameters()), change.parameters), rates, strict=True)
    groups = [{"params": parameters, "lr": rate} for parameters, rate in parts if parameters]
    optimiser, steps = Adam(groups, fused=True), training.steps_for(len(data.x))
    schedule, epoch = training.schedule(optimiser, steps), iter(list[Tensor]())
    for step in track(range(1, steps + 1), "training the VAE"):
        chosen = next(epoch, None)
        if chosen is None:
            epoch = batches(len(data.x), training.batch_size, rng)
            chosen = next(epoch)
        loss = training.loss(encoder, change.network, data[chosen], step / steps, rng)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        change.after_backward()  # Eq. 7
        optimiser.step()
        change.after_step()
        schedule.step()
    optimiser.zero_grad(set_to_none=True)  # or copies of the memory would carry the gradients


# --------------------------------------------------------- what old classes feed, Sigma of Eq. 9


class Learned(NamedTuple):
    """A learned task, from which ``protect`` computes what its classes feed the decoder."""

    encoder: MLP
    data: Batch  # (n, d)
    centres: Batch  # of the classes, (k, latent)
    training: Training


@torch.no_grad()
def posterior_samples(decoder: Decoder, task: Learned, rng: Generator) -> None:
    """Protect what the task's samples, encoded and drawn from q, feed each layer."""
    mu, sigma = task.training.posterior(task.encoder, task.data)  # (n, latent) each
    z = reparametrise(mu, sigma, torch.empty_like(mu).normal_(generator=rng))  # (n, latent)
    decoder.protect(z, task.data.rows)


# --------------------------------------------------------------------------- Algorithm 1


@dataclass(frozen=True)
class Steps:
    """What the steps of Algorithm 1 are made of, as the paper words them."""

    normaliser: Callable[[], Normaliser] = ClasswiseNormaliser
    prior: Prior = FixedPoint()  # places the means of new classes
    training: Training = Training()
    decoders: OneDecoder = field(default_factory=OneDecoder)  # which decoder a task trains
    change: type[Change] = ProjectedGradient  # what a later task may change in it
    protect: Callable[[Decoder, Learned, Generator], None] = posterior_samples  # what must stay
    null_space: Callable[[LayerInputs], NullSpace] = LayerInputs.null_space


class VAEFO:
    """One VAE for all classes, each with its own Gaussian N(mu_y, I) in latent space.

    Parameters
    ----------
    hidden, latent, embedding
        Width of the hidden layers, dimension of the latent space, and length of the class
        embeddings of VAE-CEO and VAE-FODCE; 0 for none.
    learning_rate, later_learning_rate
        Of Adam, and for the decoder once it has learned a task.
    steps
        What the steps are made of.

    Attributes
    ----------
    means_
        mu_y of each class, (latent,).
    encoder_, decoders_, route_
        The networks, and which decoder each class uses: the first, unless tasks have their own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> vae = VAEFO(hidden=16, latent=4, steps=Steps(training=Training(epochs=5)))
    >>> vae.learn(Task(rng.normal(size=(20, 8)), np.arange(20) % 2), rng)
    >>> vae.learn(Task(rng.normal(size=(10, 8)), np.full(10, 2)), rng)
    >>> vae.sample(2, 3, rng).shape
    (3, 8)
    """

    def __init__(
        self,
        *,
        hidden: int = 512,
        latent: int = 256,
        embedding: int = 0,
        learning_rate: float = 5e-4,
        later_learning_rate: float = 5e-5,
        steps: Steps = Steps(),  # noqa: B008  # frozen
    ) -> None:
        self.hidden, self.latent, self.embedding = hidden, latent, embedding
        self.learning_rate, self.later_learning_rate = learning_rate, later_learning_rate
        self.steps = steps
        self.normaliser_ = steps.normaliser()
        self.encoder_: MLP | None = None
        self.decoders_: list[Decoder] = []
        self.route_: dict[int, int] = {}
        self.means_: dict[int, Tensor] = {}

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        """One turn of the loop of Algorithm 1: learn the classes of a task, all of them new."""
        device = device_of(self.means_)
        new, draws = TensorTask.of_arrays(task, device), to_generator(rng, device)
        x = self._normalise(new)  # (n, d)
        encoder, decoder = self._prepare(new, draws)
        self._place_means(encoder, new, x, draws)  # Eq. 5
        self._train(encoder, decoder, self._batch(new, x), draws)  # Eqs. 2, 6 to 9
        self._protect(encoder, decoder, new, x, draws)  # Sigma of Eq. 9

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Synthetic features (count, d) of a class: decode draws from its Gaussian."""
        x_hat = self._decode(label, count, to_generator(rng, device_of(self.means_)))  # (count, d)
        return to_array(self.normaliser_.restore(label, x_hat))

    @torch.no_grad()
    def _decode(self, label: int, count: int, rng: Generator) -> Tensor:
        """Decode z ~ N(mu_y, I), (count, d), on the normalised scale."""
        mean = self.means_[label]  # (latent,)
        z = mean + torch.empty(count, len(mean), device=mean.device).normal_(generator=rng)
        return self.decoders_[self.route_[label]].network(z, self._rows([label] * count))

    def _normalise(self, task: TensorTask) -> Tensor:
        """Features (n, d), each normalised as its class is."""
        self.normaliser_.learn(task)
        x = torch.empty_like(task.features)
        for label in task.classes:
            x[task.labels == label] = self.normaliser_.normalise(label, task.of(label))
        return x

    def _prepare(self, task: TensorTask, rng: Generator) -> tuple[MLP, Decoder]:
        """Encoder and decoder, made for the first task; each has three layers."""
        d, new = task.features.shape[1], len(task.classes)
        if self.encoder_ is None:
            sizes = [d, self.hidden, self.hidden, 2 * self.latent]
            self.encoder_ = MLP(sizes, self.embedding, rng=rng)
        self.encoder_.add_classes(new, rng)
        sizes, decoders = [self.latent, self.hidden, self.hidden, d], self.steps.decoders
        protected = decoders.protected_layers if self.steps.change.protects else 0
        new_decoder = partial(Decoder.new, sizes, self.embedding, protected, rng)
        decoder = decoders.for_task(self.decoders_, new_decoder)
        decoder.network.add_classes(new, rng)
        self.route_ |= dict.fromkeys(task.classes, len(self.decoders_) - 1)
        return self.encoder_, decoder

    @torch.no_grad()
    def _place_means(self, encoder: MLP, task: TensorTask, x: Tensor, rng: Generator) -> Placement:
        """The mean latent of each new class, moved by Eq. 5; old means (old, latent) are fixed."""
        fixed = torch.stack([*self.means_.values()]) if self.means_ else x.new_empty(0, self.latent)
        self.means_ |= dict.fromkeys(task.classes, x.new_zeros(self.latent))  # not known yet
        mu, _ = self.steps.training.posterior(encoder, self._batch(task, x))  # (n, latent)
        latent_means = torch.stack([mu[task.labels == y].mean(dim=0) for y in task.classes])
        placement = self.steps.prior.place(latent_means, fixed, rng)  # means: (k, latent)
        self.means_ |= dict(zip(task.classes, map(torch.clone, placement.means), strict=True))
        return placement

    def _train(self, encoder: MLP, decoder: Decoder, data: Batch, rng: Generator) -> None:
        """Maximise Eq. 6: the first task in all of the decoder, later ones in its null space."""
        change, rate = Change(decoder, [], []), self.learning_rate
        if decoder.tasks:
            own = self.steps.decoders.own(decoder.network)
            change = self.steps.change(decoder, own, self._null_spaces(decoder))
            rate = self.later_learning_rate
        train(encoder, change, data, self.steps.training, (self.learning_rate, rate), rng)

    def _null_spaces(self, decoder: Decoder) -> list[NullSpace]:
        return [self.steps.null_space(inputs) for inputs in decoder.inputs]

    def _protect(
        self, encoder: MLP, decoder: Decoder, task: TensorTask, x: Tensor, rng: Generator
    ) -> None:
        """Add the layer inputs of the new classes to those that later tasks leave alone."""
        means = torch.stack([self.means_[label] for label in task.classes])  # (k, latent)
        centres = Batch(means, means, self._rows(task.classes))
        learned = Learned(encoder, self._batch(task, x), centres, self.steps.training)
        self.steps.protect(decoder, learned, rng)
        decoder.tasks += 1

    def _batch(self, task: TensorTask, x: Tensor) -> Batch:
        labels = task.labels.tolist()
        prior_means = torch.stack([self.means_[label] for label in labels])  # (n, latent)
        return Batch(x, prior_means, self._rows(labels))

    def _rows(self, labels: list[int]) -> Tensor | None:
        """The row of each label's class in the embedding tables, (n,), if there are any."""
        if not self.embedding:
            return None
        position = {label: row for row, label in enumerate(self.means_)}
        return torch.tensor([position[y] for y in labels], device=device_of(self.means_))
