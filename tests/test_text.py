"""The text tower and prompts: every short cut against the long way."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lab.benchmarks.prompts import Padded
from lab.benchmarks.prompts import main as run_benchmark
from torch import Tensor
from torch.nn.functional import cross_entropy

from frugalvae.encoders.defaults import sentence
from frugalvae.encoders.hub import pretrained
from frugalvae.errors import InputError
from frugalvae.paper.clip import TextTower, groups, load_text_tower
from frugalvae.paper.prompts import LearnedPrompts, context_network, first_tokens

NAMES = ["cat", "Black_footed_Albatross", "001.House_Finch", "emu", "gulls/Ring billed gull", "owl"]


@pytest.fixture
def tower(clip_folder: Path) -> TextTower:
    return load_text_tower(str(clip_folder))


def make_prompts(tower: TextTower, checkpoint: bool | None = False) -> LearnedPrompts:
    rng = torch.Generator().manual_seed(0)
    network = context_network(tower, rng)
    tokens = first_tokens(len(NAMES), tower.width, rng) * 10
    return LearnedPrompts(tower, NAMES, tokens.requires_grad_(), network, checkpoint=checkpoint)


def samples(tower: TextTower, count: int = 96) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    return torch.randn(count, tower.dim, generator=rng), torch.arange(count) % len(NAMES)


def loss_on(x: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    x = torch.nn.functional.normalize(x)
    return lambda made: cross_entropy(10 * x @ torch.nn.functional.normalize(made).T, y)


def gradients(prompts: LearnedPrompts) -> list[Tensor]:
    parameters = [prompts.tokens, *prompts.network.parameters()]
    found = [parameter.grad.clone() for parameter in parameters if parameter.grad is not None]
    assert len(found) == len(parameters)
    assert all(gradient.abs().max() > 0 for gradient in found)
    return found


def assert_same(some: list[Tensor], others: list[Tensor], tolerance: float = 1e-4) -> None:
    for one, other in zip(some, others, strict=True):
        assert (one - other).abs().max() <= tolerance * other.abs().max()


# ------------------------------------------------------------------ the same, but faster


def test_a_text_feature_is_that_of_the_whole_model_at_all_positions(
    tower: TextTower, clip_folder: Path
) -> None:
    model = pretrained("CLIPModel", clip_folder)
    texts = [sentence(name) for name in NAMES]
    tokens = tower.tokenizer(texts, padding="max_length", max_length=77, return_tensors="pt")
    with torch.no_grad():
        expected = model.get_text_features(**tokens).pooler_output
    torch.testing.assert_close(tower.describe(NAMES), expected, rtol=1e-4, atol=1e-4)
    assert tower.scale == pytest.approx(100)


def test_prompts_cut_at_the_end_of_text_have_the_features_and_gradients_of_77_positions(
    tower: TextTower,
) -> None:
    cut, padded = make_prompts(tower), make_prompts(tower)
    loss_of = loss_on(*samples(tower))
    long_way = Padded(padded).features()
    torch.testing.assert_close(cut.all_features(), long_way, rtol=1e-4, atol=1e-4)
    cut.backward(loss_of)
    loss_of(long_way).backward()
    assert_same(gradients(cut), gradients(padded))


def test_one_pass_for_many_samples_is_the_mean_of_a_pass_for_each_few(tower: TextTower) -> None:
    x, y = samples(tower)
    together, apart = make_prompts(tower), make_prompts(tower)
    loss = together.backward(loss_on(x, y))
    losses = [apart.backward(loss_on(x[at : at + 12], y[at : at + 12])) for at in range(0, 96, 12)]
    assert loss == pytest.approx(sum(losses) / 8, rel=1e-5)
    assert_same(gradients(together), [gradient / 8 for gradient in gradients(apart)])


def test_activations_computed_twice_give_the_same_gradients(tower: TextTower) -> None:
    kept, twice = make_prompts(tower), make_prompts(tower, checkpoint=True)
    losses = [prompts.backward(loss_on(*samples(tower))) for prompts in (kept, twice)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert_same(gradients(kept), gradients(twice))


def test_activations_are_computed_twice_only_where_they_are_many(
    tower: TextTower, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = make_prompts(tower, None)
    assert not few.checkpoint
    monkeypatch.setattr("frugalvae.paper.prompts.GRAPH_LIMIT", few.graph_bytes() - 1)
    assert make_prompts(tower, None).checkpoint


def test_half_the_bits_give_nearly_the_same(clip_folder: Path, tower: TextTower) -> None:
    half = load_text_tower(str(clip_folder), "bfloat16")
    assert half.tokens.dtype == torch.bfloat16
    some, others = half.describe(NAMES), tower.describe(NAMES)
    assert some.dtype == torch.float32
    assert torch.cosine_similarity(some, others).min() > 0.999
    prompts = make_prompts(half)
    prompts.backward(loss_on(*samples(half)))
    assert all(gradient.isfinite().all() for gradient in gradients(prompts))


def test_the_gradient_is_that_of_finite_differences(tower: TextTower) -> None:
    prompts = make_prompts(tower)
    loss_of = loss_on(*samples(tower))
    prompts.backward(loss_of)
    direction = torch.randn(prompts.tokens.shape, generator=torch.Generator().manual_seed(2))
    assert prompts.tokens.grad is not None
    slope = float((prompts.tokens.grad * direction).sum())
    losses = []
    with torch.no_grad():
        for step in (1e-4, -1e-4):
            prompts.tokens += step * direction
            losses.append(float(loss_of(prompts.all_features())))
            prompts.tokens -= step * direction
    assert (losses[0] - losses[1]) / 2e-4 == pytest.approx(slope, rel=0.05)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.integers(1, 7))
def test_groups_hold_every_position_once_and_equal_lengths_together(
    lengths: list[int], most: int
) -> None:
    found = groups(lengths, most)
    assert sorted(row for rows in found for row in rows) == list(range(len(lengths)))
    for rows in found:
        assert len(rows) <= most
        assert len({lengths[row] for row in rows}) == 1


def test_a_tower_is_loaded_once_and_never_copied(tower: TextTower, clip_folder: Path) -> None:
    assert load_text_tower(str(clip_folder)) is tower
    assert copy.deepcopy(tower) is tower


# ------------------------------------------------------------------ bad input


def test_a_text_that_does_not_fit_the_context_is_refused(tower: TextTower) -> None:
    assert len(tower.tokenise("cat " * 75)) == 76
    with pytest.raises(InputError, match=r"makes 76 tokens; expected 1 to 75, the context of"):
        tower.tokenise("cat " * 76)
    with pytest.raises(InputError, match=r"makes 74 tokens; expected 1 to 73.* 2 learned tokens"):
        tower.tokenise("cat " * 74, room=2)
    with pytest.raises(InputError, match="makes 0 tokens"):
        tower.tokenise(" ")


def test_a_model_without_a_text_tower_is_refused(clip_folder: Path, tmp_path: Path) -> None:
    from transformers import CLIPVisionModelWithProjection

    CLIPVisionModelWithProjection.from_pretrained(clip_folder).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="of type 'clip_vision_model'; expected 'clip', with an"):
        load_text_tower(str(tmp_path))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.json", "no AutoConfig can be loaded"),
        ("model.safetensors", "no CLIPModel can be loaded"),
        ("tokenizer.json", "its tokenizer knows .* tokens, its text tower 49408"),
    ],
)
def test_a_model_with_a_file_missing_is_refused(
    clip_folder: Path, tmp_path: Path, missing: str, message: str
) -> None:
    shutil.copytree(clip_folder, tmp_path / "clip")
    (tmp_path / "clip" / missing).unlink()
    with pytest.raises(InputError, match=message):
        load_text_tower(str(tmp_path / "clip"))


# ------------------------------------------------------------------ the benchmark


def test_the_benchmark_compares_what_computes_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "--classes 4 --samples 8 --width 64 --layers 2 --steps 1 --progress 0.005"
    monkeypatch.setattr("sys.argv", ["prompts", *small.split()])
    run_benchmark()
    printed = capsys.readouterr().out
    gap = re.search(r"relative difference (\S+)", printed)
    assert gap is not None
    assert float(gap[1]) < 1e-4
    assert "straightforward, rate 0.005" in printed
