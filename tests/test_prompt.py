"""The prompt head: what it learns, what it keeps, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from frugalvae.classifier import FrugalClassifier
from frugalvae.errors import InputError
from frugalvae.paper.clip import TextTower
from frugalvae.paper.prompts import PromptHead
from frugalvae.parts import make_head
from frugalvae.parts.protocols import Replay, Task
from frugalvae.parts.store_all import StoreAllMemory
from tests.conftest import blobs
from tests.small_clip import clip_on_disk


def make(**settings: Any) -> PromptHead:
    return PromptHead(clip_on_disk(), **{"epochs": 2, "samples": 32, "passes": 10} | settings)


def teach(head: PromptHead, *tasks: Task) -> PromptHead:
    memory, rng = StoreAllMemory(), np.random.default_rng(0)
    for task in tasks:
        head.register(task)
        memory.learn(task, rng)
        head.learn(task, Replay(memory, rng))
    return head


def loss(head: PromptHead, task: Task) -> float:
    """Cross-entropy."""
    chances = log_softmax(head.logits(task.features), axis=1)
    return -float(chances[np.arange(len(task.labels)), task.labels].mean())


TEST = blobs([0, 1, 2, 3], seed=9)


@pytest.mark.parametrize("optimiser", ["adamw", "lbfgs"])
def test_prompts_are_learned_by_either_optimiser(optimiser: str) -> None:
    untrained = teach(make(epochs=0), blobs([0, 1, 2, 3]))
    trained = teach(make(optimiser=optimiser, epochs=4), blobs([0, 1, 2, 3]))
    assert loss(trained, TEST) < 0.3 * loss(untrained, TEST)


def test_untrained_class_vectors_come_from_the_untrained_prompts() -> None:
    head = teach(make(epochs=0), blobs([0, 1]))
    assert head.tokens_.shape == (2, head.tower.width)
    torch.testing.assert_close(head.vectors_.norm(dim=1), torch.ones(2))
    assert 0.005 < head.tokens_.std() < 0.05


def test_classes_get_their_token_when_they_arrive_and_keep_it() -> None:
    head = teach(make(epochs=0), blobs([4, 1]))
    first = head.tokens_.clone()
    memory = StoreAllMemory()
    for task in (blobs([4, 1]), blobs([2])):
        memory.learn(task, np.random.default_rng(0))
    head.register(blobs([2]))
    head.learn(blobs([2]), Replay(memory, np.random.default_rng(0)))
    assert head.classes == [1, 4, 2]
    assert head.names_ == {1: "class 1", 4: "class 4", 2: "class 2"}
    assert torch.equal(head.tokens_[:2], first)


def test_the_tower_passes_no_more_often_than_was_asked_and_never_to_predict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = []
    encode = TextTower.encode

    def counted(tower: TextTower, prompts: torch.Tensor) -> torch.Tensor:
        passes.append(len(prompts))
        return encode(tower, prompts)

    monkeypatch.setattr(TextTower, "encode", counted)
    head = teach(make(epochs=3, passes=7, samples=50), blobs([0, 1, 2]))
    described, learned, final = 3, 3 * 3 * 7, 3
    assert sum(passes) == described + learned + final
    passes.clear()
    head.logits(TEST.features)
    assert not passes


def test_nothing_of_the_tower_is_counted_or_copied() -> None:
    head = teach(make(), blobs([0, 1]))
    width, dim = head.tower.width, head.tower.dim
    shared = 2 * (dim * dim + dim) + dim * width + width + width * width + width
    assert sum(part.stored for part in head.components()) == 2 * width + 2 * dim + shared
    assert sum(array.size for array in head.arrays().values()) == 2 * width + 2 * dim + shared
    kept = (head.tokens_, head.vectors_, *head.network_.parameters())
    assert not any(tensor.requires_grad for tensor in kept)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": {}}, r"labels are numbers; pass names=\{label: name, ...\}"),
        ({"names": {0: "cat", 1: "emu " * 74}}, "makes 75 tokens; expected 1 to 73"),
        ({"names": {0: "cat", 1: 7}}, "the name of class 1 is 7; expected text"),
        ({"names": ["cat", "emu"]}, "names is a list; expected {label: name, ...}"),
    ],
)
def test_names_that_cannot_be_used_are_refused_before_anything_is_learned(
    given: dict[str, Any], message: str
) -> None:
    task = blobs([0, 1])
    clf = FrugalClassifier("gaussian-diagonal", make())
    with pytest.raises(InputError, match=message):
        clf.partial_fit(task.features, task.labels, **given)
    assert not hasattr(clf, "classes_")


def test_features_of_another_width_than_the_tower_are_refused() -> None:
    clf = FrugalClassifier("gaussian-diagonal", make())
    with pytest.raises(InputError, match="5 columns, but the text tower of .* makes 8; encode"):
        clf.partial_fit(np.eye(5), list("abcde"))
    assert not hasattr(clf, "classes_")


def test_features_of_another_width_than_the_memory_are_refused() -> None:
    task = blobs([0, 1])
    clf = FrugalClassifier("gaussian-diagonal", make())
    clf.partial_fit(task.features, task.labels, names={0: "cat", 1: "emu"})
    with pytest.raises(InputError, match="5 features, but .* is expecting 8"):
        clf.partial_fit(np.eye(5)[:2], [7, 8], names={7: "a", 8: "b"})
    assert clf.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model", 3),
        ("epochs", -1),
        ("passes", 0),
        ("optimiser", "sgd"),
        ("precision", "float8"),
        ("checkpoint", "yes"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{setting} is {value!r}"):
        make_head("prompt", **{setting: value})
