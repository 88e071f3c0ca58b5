"""Prompt head: Eq. 3 with class vectors that CLIP's text tower makes of learned prompts.

:mod:`~frugalvae.heads.learned_prompts` has the prompts themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from frugalvae.cost import Component, component
from frugalvae.encoders.text import spoken
from frugalvae.encoders.text_tower import Precision, TextTower, load_text_tower
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.heads.defaults import HeadDefaults
from frugalvae.heads.learned_prompts import (
    LEARNED,
    LearnedPrompts,
    context_network,
    first_tokens,
)
from frugalvae.heads.replay_epochs import Samples, replay_epochs
from frugalvae.interfaces import Replay, Task
from frugalvae.maths.arrays import Array
from frugalvae.maths.devices import find_device
from frugalvae.paper.equations import cosine_logits, unit
from frugalvae.paper.networks import MLP
from frugalvae.plugins import check_trusted
from frugalvae.progress import track
from frugalvae.tensors import to_array, to_generator

BETAS = (0.8, 0.9)  # of AdamW: few steps of many samples converge faster than at (0.9, 0.999)
DEFAULT = "openai/clip-vit-large-patch14"  # the paper's
VECTOR_RATE = 0.01  # learning rate of free class vectors

#: An optimiser, and what to call after each epoch.
Stepper = tuple[torch.optim.Optimizer, Callable[[], None]]


class PromptHead(HeadDefaults):
    """Learns prompts on replay, through a frozen text tower, at CLIP's temperature.

    A class's prompt is a token of its own (CoOp), a token that a shared network makes of the
    class's text feature (CoCoOp), and its name. Tokens and network are trained by AdamW, with
    new samples for every epoch. Predicting needs the class vectors only, not the tower.

    Parameters
    ----------
    model
        The CLIP whose image tower made the features, in ``transformers`` format: a folder, or a
        name on the hub. Or a :class:`~frugalvae.encoders.text_tower.TextTower`.
    epochs, samples
        The number of epochs, and samples per class in an epoch.
    passes
        Passes through the tower per epoch, which take nearly all the time. The samples of an
        epoch are divided among them.
    optimiser
        ``"adamw"`` as in CGIL, or ``"lbfgs"``, for which each pass uses all samples of the
        epoch. In the benchmark, it reaches a lower loss in as many passes.
    learning_rate, weight_decay
        Of AdamW; the learning rate falls to zero as a cosine.
    precision
        Of the tower: ``"float32"``, or ``"bfloat16"`` for machines that support it.
    checkpoint
        Whether to save memory by computing activations twice; ``None`` decides by their size.
    only_new
        An approximation, off by default: train only prompts of new classes, and the shared
        network only on the first task. Old class vectors stay as they are.
    vectors_first
        An approximation, off by default: fit class vectors on replay without the tower, then
        fit prompts to them in this many passes. 0 trains prompts on replay.

    References
    ----------
    Frascaroli et al., "CLIP with Generative Latent Replay: a Strong Baseline for
    Incremental Learning" (CGIL), 2024.
    """

    network_: MLP
    tokens_: Tensor
    scale_: float
    holds_tensors = True

    def __init__(
        self,
        model: str | TextTower = DEFAULT,
        *,
        epochs: int = 30,
        samples: int = 256,
        passes: int = 25,
        optimiser: Literal["adamw", "lbfgs"] = "adamw",
        learning_rate: float = 0.005,
        weight_decay: float = 0.0,
        precision: Precision = "float32",
        checkpoint: bool | None = None,
        only_new: bool = False,
        vectors_first: int = 0,
    ) -> None:
        if not isinstance(model, str | TextTower):
            raise InputError(
                f"model is {model!r}; expected a folder or a name on the hub, such as "
                "'openai/clip-vit-large-patch14'"
            )
        check_number("epochs", epochs, 0, 100_000, whole=True)
        check_number("samples", samples, 1, 65_536, whole=True)
        check_number("passes", passes, 1, 100_000, whole=True)
        check_choice("optimiser", optimiser, ("adamw", "lbfgs"))
        check_number("learning_rate", learning_rate, 1e-12)
        check_number("weight_decay", weight_decay, 0)
        check_choice("precision", precision, ("float32", "bfloat16"))
        check_choice("checkpoint", checkpoint, (True, False, None))
        check_choice("only_new", only_new, (True, False))
        check_number("vectors_first", vectors_first, 0, 1_000_000, whole=True)
        self.model = model if isinstance(model, str) else model.name
        self.epochs = epochs
        self.samples = samples
        self.passes = passes
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.precision = precision
        self.checkpoint = checkpoint
        self.only_new = only_new
        self.vectors_first = vectors_first
        self.classes_: list[int] = []
        self.names_: dict[int, str] = {}
        self.vectors_ = torch.empty(0)
        self._tower = model if isinstance(model, TextTower) else None
        self._trust: Collection[str] | None = None  # of whoever loads the file that names the model

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    @property
    def tower(self) -> TextTower:
        """The text tower, loaded when it is first needed."""
        if self._tower is None:
            if self._trust is not None and self.model != DEFAULT:
                what = f"its prompts are learned with the model {self.model}"
                check_trusted(self.model, self._trust, what, "--trust", self.model)
            self._tower = load_text_tower(self.model, self.precision)
        return self._tower

    def named_by_file(self, trust: Collection[str]) -> None:
        """Load no model from now on but those that are trusted, and the usual one."""
        self._trust = trust

    def register(self, task: Task) -> None:
        """Record the names of new classes, or raise if something does not fit the tower."""
        dim = task.features.shape[1]
        if dim != self.tower.dim:
            raise InputError(
                f"features have {dim} columns, but the text tower of {self.model} makes "
                f"{self.tower.dim}; encode the images with that model, or name the right one"
            )
        for label in task.classes:
            if label not in task.names:
                raise InputError(
                    "prompts are made of class names, and labels are numbers; "
                    "pass names={label: name, ...}, or use names as labels"
                )
            self.tower.tokenise(f"{spoken(task.names[label])}.", LEARNED)
        self.names_ |= {label: task.names[label] for label in task.classes}

    def learn(self, task: Task, replay: Replay) -> None:
        """Add a token for each new class, and train on replay of every class."""
        device = self.vectors_.device if self.classes_ else find_device()
        tower, rng = self.tower.to(device), to_generator(replay.rng, device)
        old = len(self.classes_)
        if old:
            self._keep([label for label in replay.classes if label in self.classes_])
        else:
            self.network_ = context_network(tower, rng)
            self.tokens_ = torch.empty(0, tower.width, device=device)
            self.vectors_ = torch.empty(0, tower.dim, device=device)
            self.scale_ = tower.scale
        self.classes_ = list(replay.classes)
        new = first_tokens(len(self.classes_) - old, tower.width, rng)
        fixed = old if self.only_new else 0
        tokens = torch.cat([self.tokens_, new])[fixed:].clone().requires_grad_()
        self.network_.requires_grad_(not fixed)
        names = [self.names_[label] for label in self.classes_[fixed:]]
        prompts = LearnedPrompts(tower, names, tokens, self.network_, checkpoint=self.checkpoint)

        fit = self._fit_to_vectors if self.vectors_first else self._fit
        fit(prompts, self.vectors_[:fixed], replay)

        self.network_.requires_grad_(False)
        self.network_.zero_grad()
        self.tokens_ = torch.cat([self.tokens_[:fixed], tokens.detach()])
        with torch.no_grad():
            made = unit(prompts.all_features())
        self.vectors_ = torch.cat([self.vectors_[:fixed], made])

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Train on replay of every class; with ``only_new``, change nothing."""
        if not self.only_new:
            self.learn(Task.empty(task.features.shape[1]), replay)

    def forget(self, label: int) -> list[str]:
        """Drop the class's token, vector and name."""
        self._keep([known for known in self.classes_ if known != label])
        del self.names_[label]
        return ["the network that all prompts share was trained on replay of it"]

    def _keep(self, classes: list[int]) -> None:
        """Keep tokens and vectors of these classes, in this order."""
        rows = [self.classes_.index(label) for label in classes]
        self.tokens_, self.vectors_ = self.tokens_[rows], self.vectors_[rows]
        self.classes_ = classes

    def _fit(self, prompts: LearnedPrompts, fixed: Tensor, replay: Replay) -> None:
        """Minimise the cross-entropy of replay over the prompts."""
        optimiser, decay = self._optimiser(self._parameters(prompts))
        for epoch in self._epochs(replay):
            for x, y in epoch:
                optimiser.step(_descent(optimiser, prompts, partial(self._loss, x, y, fixed)))
            decay()

    def _fit_to_vectors(self, prompts: LearnedPrompts, fixed: Tensor, replay: Replay) -> None:
        """Fit free class vectors on replay, then prompts to these vectors."""
        with torch.no_grad():
            vectors = unit(prompts.all_features())
        free = torch.optim.Adam([vectors.requires_grad_()], VECTOR_RATE)
        for epoch in self._epochs(replay):
            for x, y in epoch:
                free.zero_grad(set_to_none=True)
                self._loss(x, y, fixed, vectors).backward()  # type: ignore[no-untyped-call]
                free.step()

        goal = vectors.detach()
        optimiser, decay = self._adamw(self._parameters(prompts), self.vectors_first)
        for _ in track(range(self.vectors_first), "fitting prompts"):
            optimiser.step(_descent(optimiser, prompts, partial(_distance, goal)))
            decay()

    def _loss(self, x: Tensor, y: Tensor, fixed: Tensor, made: Tensor) -> Tensor:
        logits = cosine_logits(x, torch.cat([fixed, made]), 1 / self.scale_)
        return cross_entropy(logits, y)

    def _parameters(self, prompts: LearnedPrompts) -> list[Tensor]:
        shared = [weight for weight in self.network_.parameters() if weight.requires_grad]
        return [prompts.tokens, *shared]

    def _optimiser(self, parameters: list[Tensor]) -> Stepper:
        if self.optimiser == "adamw":
            return self._adamw(parameters, self.epochs)
        quasi_newton = torch.optim.LBFGS(
            parameters,
            max_iter=self.passes,
            max_eval=self.passes,
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        return quasi_newton, lambda: None

    def _adamw(self, parameters: list[Tensor], rounds: int) -> Stepper:
        adam = torch.optim.AdamW(
            parameters, self.learning_rate, betas=BETAS, weight_decay=self.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, max(rounds, 1))
        return adam, schedule.step

    def _epochs(self, replay: Replay) -> Iterator[Iterator[Samples]]:
        size, device = self._batch_size(replay), self.vectors_.device
        return replay_epochs(replay, self.epochs, self.samples, size, device)

    def _batch_size(self, replay: Replay) -> int:
        """Samples per pass: a part of the epoch for AdamW, all of it for L-BFGS."""
        count = len(replay.classes) * self.samples
        return count if self.optimiser == "lbfgs" else max(count // self.passes, 1)

    def logits(self, features: Array) -> Array:
        """Logits (n, k) of Eq. 3 at CLIP's temperature."""
        vectors = self.vectors_.double()
        x = torch.as_tensor(features, dtype=torch.float64, device=vectors.device)
        return to_array(cosine_logits(x, vectors, 1 / self.scale_))

    def arrays(self) -> dict[str, Array]:
        """A token and a vector per class, and the shared network."""
        shared = {f"network.{name}": kept for name, kept in self.network_.state_dict().items()}
        kept = {"tokens": self.tokens_, "vectors": self.vectors_} | shared
        return {name: to_array(tensor) for name, tensor in kept.items()}

    def components(self) -> list[Component]:
        """The paper counts what is kept for replay, not the classifier."""
        shared = sum(weight.numel() for weight in self.network_.parameters())
        return [
            component("head: tokens", 0, self.tokens_.numel()),
            component("head: vectors", 0, self.vectors_.numel()),
            component("head: shared network", 0, shared),
        ]


def _descent(
    optimiser: torch.optim.Optimizer, prompts: LearnedPrompts, loss_of: Callable[[Tensor], Tensor]
) -> Callable[[], float]:
    """The closure that an optimiser calls for a loss and its gradient."""

    def evaluate() -> float:
        optimiser.zero_grad(set_to_none=True)
        return prompts.backward(loss_of)

    return evaluate


def _distance(goal: Tensor, made: Tensor) -> Tensor:
    """Mean cosine distance of text features from their target."""
    return (1 - cosine_similarity(made, goal)).mean()
