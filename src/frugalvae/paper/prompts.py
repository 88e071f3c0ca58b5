"""Learnable prompts as CGIL parametrises them: text features, and gradients through the tower.

:class:`~frugalvae.paper.prompts.PromptHead` is the head that trains them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from frugalvae.encoders.defaults import spoken
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.arrays import Array, find_device
from frugalvae.paper.clip import Precision, TextTower, groups, load_text_tower
from frugalvae.paper.equations import cosine_logits
from frugalvae.paper.networks import MLP
from frugalvae.parts.cosine import replay_epochs
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.protocols import Component, Replay, Task, component
from frugalvae.parts.registry import NamedByFile, check_trusted
from frugalvae.parts.tensors import to_array, to_generator, unit

LEARNED = 2  # learned tokens per prompt: the class's own, and the shared network's
PROMPTS_PER_PASS = 64
GRAPH_LIMIT = 2 * 2**30  # bytes of activations above which they are computed twice


class LearnedPrompts:
    """Prompts of some classes. Each is a token per class, a token from its text feature, its name.

    Parameters
    ----------
    tower
        The frozen text tower.
    names
        Names of the classes, in order.
    tokens
        The token of each class, (k, width).
    network
        Makes the second token from the class's text feature.
    checkpoint
        Compute the tower's activations again for the gradient instead of keeping them, a few
        prompts at a time: 50 % slower, in a fraction of the memory. ``None`` does so if they
        would take more than two gibibytes.
    """

    def __init__(
        self,
        tower: TextTower,
        names: Sequence[str],
        tokens: Tensor,
        network: MLP,
        *,
        checkpoint: bool | None = None,
    ) -> None:
        self.tower, self.tokens, self.network = tower, tokens, network
        self.described = tower.describe(names)  # (k, dim); never changes
        spelled = [tower.tokenise(f"{spoken(name)}.", LEARNED) for name in names]
        self.ends = [tower.embed(tokens) for tokens in spelled]  # each (length, width)
        self.groups = groups([len(end) for end in self.ends], PROMPTS_PER_PASS)
        self.checkpoint = self.graph_bytes() > GRAPH_LIMIT if checkpoint is None else checkpoint

    def graph_bytes(self) -> int:
        """Approximate size of the activations that a gradient needs."""
        positions = sum(LEARNED + len(end) for end in self.ends)
        inner = int(self.tower.layers[0].mlp.fc1.out_features)
        numbers = positions * len(self.tower.layers) * (9 * self.tower.width + 4 * inner)
        return numbers * torch.finfo(self.tower.dtype).bits // 8

    def features(self, rows: Sequence[int]) -> Tensor:
        """Text features (n, dim) of prompts of equal length."""
        made: Tensor = self.network(self.described[rows])  # (n, width)
        context = torch.stack([self.tokens[rows], made], dim=1)  # (n, 2, width)
        ends = torch.stack([self.ends[row] for row in rows])
        return self.tower.encode(torch.cat([context, ends], dim=1))

    def all_features(self) -> Tensor:
        """Text features (k, dim) of all prompts, in order."""
        order = torch.tensor([row for rows in self.groups for row in rows]).argsort()
        features = torch.cat([self.features(rows) for rows in self.groups])
        return features[order.to(features.device)]

    def backward(self, loss_of: Callable[[Tensor], Tensor]) -> float:
        """Back-propagate a loss of the text features to tokens and network.

        One pass through the tower is enough, however many samples the loss is over.
        """
        if not self.checkpoint:
            loss = loss_of(self.all_features())
            loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())
        with torch.no_grad():
            features = self.all_features()
        loss = loss_of(features.requires_grad_())
        loss.backward()  # type: ignore[no-untyped-call]
        assert features.grad is not None
        for rows in self.groups:
            self.features(rows).backward(features.grad[rows])  # type: ignore[no-untyped-call]
        return float(loss.detach())


def first_tokens(count: int, width: int, rng: torch.Generator) -> Tensor:
    """Random tokens (count, width) for new classes, on the scale of CLIP's own tokens."""
    return torch.empty(count, width, device=rng.device).normal_(std=0.02, generator=rng)


def context_network(tower: TextTower, rng: torch.Generator) -> MLP:
    """The shared network from a text feature to a token, as deep and wide as CGIL's.

    CGIL's public code has batch normalisation between these layers, but in evaluation mode and
    with initial statistics. That is an affine map, which the linear layer before it can
    represent. SELU is replaced by ReLU.
    """
    return MLP([tower.dim, tower.dim, tower.dim, tower.width, tower.width], rng=rng)


# Prompt head: Eq. 3 with class vectors that CLIP's text tower makes of learned prompts.


BETAS = (0.8, 0.9)  # of AdamW: few steps of many samples converge faster than at (0.9, 0.999)
DEFAULT = "openai/clip-vit-large-patch14"  # the paper's

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
        name on the hub. Or a :class:`~frugalvae.paper.clip.TextTower`.
    epochs, samples
        The number of epochs, and samples per class in an epoch.
    passes
        Passes through the tower per epoch, which take nearly all the time. The samples of an
        epoch are divided among them.
    optimiser
        ``"adamw"`` as in CGIL, or ``"lbfgs"``, for which each pass uses all samples of the
        epoch. In the benchmark, it reaches a lower loss in as many passes.
    learning_rate
        Of AdamW; it falls to zero as a cosine.
    precision
        Of the tower: ``"float32"``, or ``"bfloat16"`` for machines that support it.
    checkpoint
        Whether to save memory by computing activations twice; ``None`` decides by their size.

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
        precision: Precision = "float32",
        checkpoint: bool | None = None,
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
        check_choice("precision", precision, ("float32", "bfloat16"))
        check_choice("checkpoint", checkpoint, (True, False, None))
        self.model = model if isinstance(model, str) else model.name
        self.epochs = epochs
        self.samples = samples
        self.passes = passes
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.precision = precision
        self.checkpoint = checkpoint
        self.classes_: list[int] = []
        self.names_: dict[int, str] = {}
        self.vectors_ = torch.empty(0)
        self._tower = model if isinstance(model, TextTower) else None

    @property
    def classes(self) -> list[int]:
        """The classes known so far."""
        return self.classes_

    @property
    def tower(self) -> TextTower:
        """The text tower, loaded when it is first needed."""
        if self._tower is None:
            self.check_model()
            self._tower = load_text_tower(self.model, self.precision)
        return self._tower

    def check_model(self) -> None:
        """Refuse a model that a file named and nobody trusts, unless it is the usual one."""
        if isinstance(self.model, NamedByFile) and self.model != DEFAULT:
            what = f"its prompts are learned with the model {self.model}"
            check_trusted(self.model, self.model.trust, what, "--trust", self.model)

    def named_by_file(self, trust: Collection[str]) -> None:
        """Load no model from now on but those that are trusted, and the usual one."""
        self.model = NamedByFile(self.model, trust)

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
        tokens = torch.cat([self.tokens_, new]).requires_grad_()
        self.network_.requires_grad_(True)
        names = [self.names_[label] for label in self.classes_]
        prompts = LearnedPrompts(tower, names, tokens, self.network_, checkpoint=self.checkpoint)
        self._fit(prompts, replay)
        self.network_.requires_grad_(False)
        self.network_.zero_grad()
        self.tokens_ = tokens.detach()
        with torch.no_grad():
            self.vectors_ = unit(prompts.all_features())

    def update(self, task: Task, count: int, replay: Replay) -> None:
        """Train on replay of every class."""
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

    def _fit(self, prompts: LearnedPrompts, replay: Replay) -> None:
        """Minimise the cross-entropy of replay over the prompts."""
        optimiser, decay = self._optimiser([prompts.tokens, *self.network_.parameters()])
        size, device = self._batch_size(replay), self.vectors_.device

        def loss_of(x: Tensor, y: Tensor, made: Tensor) -> Tensor:
            return cross_entropy(cosine_logits(x, made, 1 / self.scale_), y)

        def evaluate(x: Tensor, y: Tensor) -> float:
            optimiser.zero_grad(set_to_none=True)
            return prompts.backward(partial(loss_of, x, y))

        for epoch in replay_epochs(replay, self.epochs, self.samples, size, device):
            for x, y in epoch:
                optimiser.step(partial(evaluate, x, y))
            decay()

    def _optimiser(self, parameters: list[Tensor]) -> Stepper:
        if self.optimiser == "adamw":
            rate, rounds = self.learning_rate, max(self.epochs, 1)
            adam = torch.optim.AdamW(parameters, rate, betas=BETAS, weight_decay=0.0)
            return adam, torch.optim.lr_scheduler.CosineAnnealingLR(adam, rounds).step
        quasi_newton = torch.optim.LBFGS(
            parameters,
            max_iter=self.passes,
            max_eval=self.passes,
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        return quasi_newton, lambda: None

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
