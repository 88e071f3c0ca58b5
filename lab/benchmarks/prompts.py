"""One epoch of prompt learning against the straightforward loop, side by side.

``python -m lab.benchmarks.prompts``: 200 classes, 256 samples each, a text tower of the size of
ViT-L/14's with random weights (its time does not depend on them), features simulated.
``--progress`` also runs the straightforward loop's whole epoch, of 400 steps, to see how
far it gets; with prompts cut at the end of text, which changes nothing but the time.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from frugalvae.console import Display
from frugalvae.encoders.defaults import spoken
from frugalvae.formatting import duration
from frugalvae.maths.arrays import Array, unit
from frugalvae.paper.clip import TextTower
from frugalvae.paper.equations import cosine_logits
from frugalvae.paper.prompts import (
    LEARNED,
    LearnedPrompts,
    PromptHead,
    context_network,
    first_tokens,
)
from frugalvae.parts.cosine import draw
from frugalvae.parts.protocols import Replay, Task

SCALE = 100.0  # CLIP's
CONTEXT = 77
SMALL_BATCH = 128
CPU = torch.device("cpu")
KINDS = [
    "albatross",
    "auklet",
    "blackbird",
    "bunting",
    "cardinal",
    "cormorant",
    "cowbird",
    "crow",
    "cuckoo",
    "finch",
    "flycatcher",
    "grebe",
    "grosbeak",
    "gull",
    "hummingbird",
    "jay",
    "kingfisher",
    "lark",
    "loon",
    "oriole",
    "pelican",
    "puffin",
    "raven",
    "sparrow",
    "starling",
    "swallow",
    "tanager",
    "tern",
    "thrasher",
    "vireo",
    "warbler",
    "waxwing",
    "woodpecker",
    "wren",
]
LOOKS = ["black footed", "crested", "western", "spotted", "red winged", "yellow headed"]


OURS: dict[str, dict[str, Any]] = {
    "AdamW, 25 passes": {},
    "L-BFGS, 25 passes": {"optimiser": "lbfgs"},
    "L-BFGS, 50 passes": {"optimiser": "lbfgs", "passes": 50},
    "AdamW, 25 passes, activations computed twice": {"checkpoint": True},
}


class Tokens:
    """Stands for CLIP's tokenizer: as many tokens as words, each by its own number."""

    bos_token_id, eos_token_id = 49406, 49407

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        """Some number for each word."""
        words = text.replace(".", " .").split()
        return {"input_ids": [sum(map(ord, word)) * 31 % 49000 for word in words]}


class Simulated:
    """Stands for a memory: classes around means that have a direction in common, as CLIP's."""

    def __init__(self, classes: int, dim: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        shared, own = (rng.standard_normal((n, dim), np.float32) for n in (1, classes))
        self.means = unit(unit(shared) + 0.7 * unit(own))
        self.classes = list(range(classes))

    def sample(self, label: int, count: int, rng: np.random.Generator) -> Array:
        """Samples (count, dim) of length one."""
        dim = self.means.shape[1]
        noise = rng.normal(0, 1.6 / math.sqrt(dim), (count, dim))
        return unit(self.means[label] + noise).astype(np.float32)


def random_tower(width: int, layers: int, heads: int, seed: int = 0) -> TextTower:
    """A text tower of random weights, scaled so that names differ as they do in CLIP."""
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    torch.manual_seed(seed)
    config = CLIPTextConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        projection_dim=width,
        max_position_embeddings=CONTEXT,
        eos_token_id=Tokens.eos_token_id,
        bos_token_id=Tokens.bos_token_id,
    )
    model = CLIPTextModelWithProjection(config)
    for name, weight in model.named_parameters():
        if weight.ndim > 1 and "embedding" not in name:
            weight.data *= 4
    return TextTower(model, Tokens(), scale=SCALE, name="random")


class Padded:
    """Prompts at all 77 positions through the model's own forward pass: no speed-up at all."""

    def __init__(self, prompts: LearnedPrompts) -> None:
        self.prompts, tower = prompts, prompts.tower
        self.start = tower.embed([tower.tokenizer.bos_token_id])
        self.ends_at = [1 + LEARNED + len(end) - 1 for end in prompts.ends]
        blank = tower.embed([0])
        self.tails = torch.stack(
            [torch.cat([e, blank.expand(CONTEXT - 1 - LEARNED - len(e), -1)]) for e in prompts.ends]
        )

    def features(self) -> Tensor:
        """Text features of all classes."""
        prompts, tower = self.prompts, self.prompts.tower
        count = len(self.tails)
        made = prompts.network(prompts.described)
        context = torch.stack([prompts.tokens, made], dim=1)
        x = torch.cat([self.start.expand(count, 1, -1), context, self.tails], dim=1)
        x = x + tower.positions
        mask = torch.full((CONTEXT, CONTEXT), -math.inf).triu(1)[None, None]
        for layer in tower.layers:
            x = layer(x, mask.expand(count, 1, -1, -1))
            x = x[0] if isinstance(x, tuple) else x
        features: Tensor = tower.projection(tower.norm(x)[range(count), self.ends_at])
        return features


def names(count: int) -> list[str]:
    """So many names of birds, of one to three words."""
    found = KINDS + [f"{look} {kind}" for look in LOOKS for kind in KINDS]
    return found[:count]


def loss_of(x: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda made: cross_entropy(cosine_logits(x, made, 1 / SCALE), y)


class Bench:
    """Everything that the measurements share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.show = options, Display()
        self.tower = random_tower(options.width, options.layers, options.width // 64)
        self.memory = Simulated(options.classes, self.tower.dim)
        self.names = names(options.classes)
        self.held_out = draw(Replay(self.memory, np.random.default_rng(1)), 64, CPU)
        no_samples = np.zeros((options.classes, self.tower.dim)), np.arange(options.classes)
        self.task = Task(*no_samples, names=dict(enumerate(self.names)))

    def replay(self) -> Replay:
        """The same draws for everything measured."""
        return Replay(self.memory, np.random.default_rng(0))

    def prompts(self) -> LearnedPrompts:
        """Untrained, always the same."""
        rng = torch.Generator().manual_seed(0)
        network = context_network(self.tower, rng)
        tokens = first_tokens(self.options.classes, self.tower.width, rng).requires_grad_()
        return LearnedPrompts(self.tower, self.names, tokens, network, checkpoint=False)

    def straightforward_seconds(self) -> float:
        """Of one step: the best of a few, after checking that it computes the same."""
        prompts = self.prompts()
        padded = Padded(prompts)
        x, y = draw(self.replay(), 1, CPU)
        fastest = math.inf
        for _ in range(self.options.steps):
            start = time.perf_counter()
            features = padded.features()
            loss_of(x[:SMALL_BATCH], y[:SMALL_BATCH])(features).backward()
            fastest = min(fastest, time.perf_counter() - start)
        with torch.no_grad():
            gap = float((features - prompts.all_features()).abs().max() / features.abs().max())
        self.show.say(f"77 positions against prompts cut at the end: relative difference {gap:.0e}")
        return fastest

    def ours(self, **settings: Any) -> tuple[float, float]:
        """Seconds of an epoch, and the loss on held-out replay after it."""
        head = PromptHead(self.tower, epochs=1, samples=self.options.samples, **settings)
        start = time.perf_counter()
        head.register(self.task)
        head.learn(self.task, self.replay())
        return time.perf_counter() - start, self.loss(head.vectors_)

    def straightforward_loss(self, rate: float) -> float:
        """After the whole epoch of small batches, with CGIL's optimiser."""
        prompts = self.prompts()
        parameters = [prompts.tokens, *prompts.network.parameters()]
        optimiser = torch.optim.AdamW(parameters, rate, weight_decay=0.0)
        x, y = draw(self.replay(), self.options.samples, CPU)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        for number, rows in enumerate(order.split(SMALL_BATCH), start=1):
            optimiser.zero_grad(set_to_none=True)
            prompts.backward(loss_of(x[rows], y[rows]))
            optimiser.step()
            if number % 50 == 0:
                with torch.no_grad():
                    self.show.say(f"  step {number}: {self.loss(prompts.all_features()):.3f}")
        with torch.no_grad():
            return self.loss(prompts.all_features())

    def loss(self, vectors: Tensor) -> float:
        """On replay that nothing was trained on."""
        return float(loss_of(*self.held_out)(vectors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=2, help="of the straightforward loop")
    parser.add_argument("--progress", nargs="*", type=float, metavar="RATE")
    options = parser.parse_args()
    bench = Bench(options)
    say = bench.show.say
    lengths = [len(bench.tower.tokenise(f"{spoken(n)}.")) + LEARNED + 1 for n in bench.names]
    say(
        f"{options.classes} classes x {options.samples} samples, tower {options.layers} x "
        f"{options.width}, {torch.get_num_threads()} threads of {os.cpu_count()} cores; "
        f"prompts of {min(lengths)} to {max(lengths)} positions"
    )
    with torch.no_grad():
        say(f"loss before: {bench.loss(bench.prompts().all_features()):.3f}")
    ours = {}
    for label, settings in OURS.items():
        ours[label] = bench.ours(**settings)
        say(f"{label}: {duration(ours[label][0])}, loss {ours[label][1]:.3f}")
    say(f"peak memory so far {peak():.1f} GiB")  # the straightforward loop takes far more
    step = bench.straightforward_seconds()
    steps = math.ceil(options.classes * options.samples / SMALL_BATCH)
    whole = step * steps
    say(f"straightforward: {step:.1f} s a step, {steps} steps, {duration(whole)} an epoch")
    rows = [
        (label, duration(seconds), f"{whole / seconds:.0f}x", f"{loss:.3f}")
        for label, (seconds, loss) in ours.items()
    ]
    for rate in options.progress or []:
        loss = bench.straightforward_loss(rate)
        rows.append((f"straightforward, rate {rate:g}", duration(whole), "1x", f"{loss:.3f}"))
    bench.show.table("one epoch", ["", "time", "faster", "loss on held-out replay"], rows)


def peak() -> float:
    """The most memory that this process ever had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
