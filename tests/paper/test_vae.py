"""What the incremental VAE promises: old classes stay, new ones are learned, limits are told."""

from __future__ import annotations

import copy
import inspect
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from frugalvae.errors import ConvergenceWarning, InputError, SaturationWarning
from frugalvae.maths.arrays import Array
from frugalvae.paper import nullspace, records, vae_fo
from frugalvae.paper.departures import (
    CHANGES,
    DEPARTURES,
    DRAWS,
    SCHEDULES,
    LimitedTraining,
    WarmUp,
)
from frugalvae.paper.nullspace import Decoder
from frugalvae.paper.priors import FixedPointPrior
from frugalvae.paper.records import is_saturated
from frugalvae.paper.vae_fo import VAEFO, Batch, Steps, Training
from frugalvae.paper.variants import LiteralSettings, VAEMemory, VAESettings
from frugalvae.parts import MEMORIES, make_memory
from frugalvae.parts.registry import settings_of
from tests.conftest import SMALL, blobs


def taught(*tasks: list[int], **settings: Any) -> VAEMemory:
    memory, rng = VAEMemory(**{**SMALL, **settings}), np.random.default_rng(0)
    for classes in tasks:
        memory.learn(blobs(classes), rng)
    return memory


def test_each_layer_is_decomposed_once_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found after a task is what the next one may change: nothing was fed since."""
    sums: list[torch.Tensor] = []
    spectrum = nullspace.spectrum
    monkeypatch.setattr(nullspace, "spectrum", lambda sum_: sums.append(sum_) or spectrum(sum_))
    memory = taught([0, 1], [2], [3], decoder="null-space")
    layers = len(memory.decoders_[0].inputs)
    assert len(memory.decoders_) == 1
    assert len(sums) == 3 * layers
    before = [space.null_basis for space in memory._null_spaces(memory.decoders_[0])]
    for inputs in memory.decoders_[0].inputs:
        inputs.add(torch.ones(1, len(inputs.sum_)))
    after = memory._null_spaces(memory.decoders_[0])
    assert len(sums) == 4 * layers
    assert not any(torch.equal(one, two.null_basis) for one, two in zip(before, after, strict=True))


def drift(memory: VAEMemory, later: list[int], labels: list[int]) -> float:
    """How far samples of old classes move when more is learned, from the same noise."""
    before = draw(memory, labels)
    memory = copy.deepcopy(memory)
    memory.learn(blobs(later), np.random.default_rng(1))
    return float(np.linalg.norm(draw(memory, labels) - before) / np.linalg.norm(before))


def draw(memory: VAEMemory, labels: list[int]) -> Array:
    rng = np.random.default_rng(5)
    return np.concatenate([memory.sample(label, 50, rng) for label in labels])


def decoded_means(memory: VAEMemory, labels: list[int]) -> torch.Tensor:
    """What the decoder makes of the centre of each class."""
    with torch.no_grad():
        return torch.cat(
            [
                memory.decoders_[memory.route_[label]].network(memory.means_[label][None])
                for label in labels
            ]
        )


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_the_null_space_protects_does_not_move(dynamic: bool) -> None:
    memory = taught([0, 1], [2], inputs="prior-mean", dynamic=dynamic)
    before = decoded_means(memory, [0, 1, 2])
    memory.learn(blobs([3, 4]), np.random.default_rng(1))
    torch.testing.assert_close(decoded_means(memory, [0, 1, 2]), before, rtol=1e-3, atol=1e-4)


def test_a_decoder_counts_the_tasks_that_taught_it() -> None:
    assert [each.tasks for each in taught([0, 1], [2], [3]).decoders_] == [3]
    assert [each.tasks for each in taught([0, 1], [2], [3], dynamic=True).decoders_] == [1, 2, 3]


def test_the_null_space_forgets_less_than_a_free_decoder_and_frozen_not_at_all() -> None:
    settings = {"classwise": False, "max_steps": 300}
    drifts = {
        update: drift(taught([0, 1], decoder=update, **settings), [2, 3], [0, 1])
        for update in ("null-space", "free", "frozen")
    }
    assert drifts["frozen"] == 0
    assert drifts["null-space"] < drifts["free"] / 3


def test_new_classes_are_learned_in_the_null_space_and_not_by_a_frozen_decoder() -> None:
    settings = {"classwise": False, "latent": 16, "hidden": 32, "max_steps": 600, "epochs": 600}
    real = blobs([2, 3]).features.reshape(2, 20, 8).mean(axis=1)
    errors = {}
    for update in ("null-space", "frozen"):
        memory = taught([0, 1], [2, 3], decoder=update, **settings)
        drawn = draw(memory, [2, 3]).reshape(2, 50, 8).mean(axis=1)
        errors[update] = np.linalg.norm(drawn - real)
    assert errors["null-space"] < errors["frozen"] / 3


def test_projecting_the_gradient_leaks_under_adam_and_projecting_the_update_does_not() -> None:
    old = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    moved = {}
    for projection, kind in CHANGES.items():
        decoder = Decoder.new([12, 7], 0, 1, torch.Generator().manual_seed(2))
        decoder.protect(old, None)
        change = kind(decoder, [], [inputs.null_space() for inputs in decoder.inputs])
        (weight,) = change.parameters
        before = weight.detach().clone()
        optimiser = torch.optim.Adam([weight], lr=0.1)
        rng = torch.Generator().manual_seed(1)
        for _ in range(20):
            optimiser.zero_grad()
            target = torch.randn(7, 12, generator=rng)
            (weight * target).sum().backward()
            change.after_backward()
            optimiser.step()
            change.after_step()
        moved_by = weight.detach() - before
        moved[projection] = float((moved_by @ old.T).norm() / moved_by.norm())
    assert moved["update"] < 1e-5
    assert moved["gradient"] > 1e-2


def test_embeddings_of_old_classes_are_never_touched() -> None:
    memory = taught([0, 1], embedding=3, prior="single")
    networks = [memory.encoder_, memory.decoders_[0].network]
    before = [table.detach().clone() for network in networks for table in network.tables]
    memory.learn(blobs([2, 3]), np.random.default_rng(1))
    after = [table.detach() for network in networks for table in network.tables]
    for old, new in zip(before, after, strict=True):
        assert new.shape == (4, 3)
        assert torch.equal(new[:2], old)


def test_biases_and_trunk_of_a_static_decoder_stay_as_the_first_task_left_them() -> None:
    memory = taught([0, 1])
    biases = [layer.bias.detach().clone() for layer in memory.decoders_[0].network.linears]
    memory.learn(blobs([2]), np.random.default_rng(1))
    assert len(memory.decoders_) == 1
    for layer, before in zip(memory.decoders_[0].network.linears, biases, strict=True):
        assert torch.equal(layer.bias.detach(), before)


def test_a_dynamic_decoder_has_a_last_layer_for_each_task_and_one_trunk() -> None:
    memory = taught([0, 1], [2], [3], dynamic=True)
    networks = [decoder.network for decoder in memory.decoders_]
    assert [memory.route_[label] for label in range(4)] == [0, 0, 1, 2]
    assert len({id(network.linears[0].weight) for network in networks}) == 1
    assert len({id(network.linears[-1].weight) for network in networks}) == 3
    assert len({id(network.linears[0].bias) for network in networks}) == 3


def test_saturation_is_recorded_for_every_layer_and_task_and_names_the_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "LEAST_FREE", 0.6)
    memory, rng = VAEMemory(**SMALL), np.random.default_rng(0)
    memory.learn(blobs([0, 1]), rng)
    with pytest.warns(SaturationWarning, match=r"after task 2, layer 1 .* has 3 of 6 directions"):
        memory.learn(blobs([2]), rng)
    ranks = {(state.task, state.layer): (state.rank, state.size) for state in memory.layers_}
    assert ranks[1, 1] == (4, 6)  # each class takes one direction
    assert ranks[2, 1] == (3, 6)
    assert len(ranks) == 6
    assert all(0 <= state.proportion <= 1e-6 for state in memory.layers_)


@pytest.mark.parametrize(
    ("proportion", "rank", "saturated"),
    [(0.05, 5, False), (0.051, 5, True), (0.0, 4, True), (0.0, 100, False)],
)
def test_a_layer_is_saturated_by_r_or_by_what_is_free(
    proportion: float, rank: int, saturated: bool
) -> None:
    assert is_saturated(proportion, rank, size=100) is saturated


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_fresh_decoder_takes_over_when_the_null_space_is_used_up(
    dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LEAST_FREE", 0.7)
    memory = taught([0, 1, 2], on_saturation="fresh", dynamic=dynamic, embedding=2)
    assert drift(memory, [3, 4], [0, 1, 2]) == 0  # the old decoder is left alone
    memory.learn(blobs([3, 4]), np.random.default_rng(1))
    assert [memory.route_[label] for label in range(5)] == [0, 0, 0, 1, 1]
    assert memory.layers_[-1].decoder == 2
    old, new = (decoder.network for decoder in memory.decoders_)
    assert old.tables is new.tables
    assert old.linears[0].weight is not new.linears[0].weight


def test_without_saturation_no_fresh_decoder_is_started() -> None:
    memory = taught([0], [1], inputs="prior-mean", on_saturation="fresh")
    assert len(memory.decoders_) == 1


def test_old_means_never_move_and_placement_is_recorded() -> None:
    memory = taught([0, 1])
    before = {label: mean.clone() for label, mean in memory.means_.items()}
    memory.learn(blobs([2, 3]), np.random.default_rng(1))
    assert all(torch.equal(memory.means_[label], mean) for label, mean in before.items())
    assert [state.task for state in memory.priors_] == [1, 2]
    means = torch.stack(list(memory.means_.values()))
    assert memory.priors_[-1].smallest_distance == pytest.approx(float(torch.pdist(means).min()))


def test_an_iteration_that_does_not_settle_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        taught([0, 1], prior=FixedPointPrior(max_iterations=1))


def test_matched_noise_brings_samples_to_the_spread_of_the_class() -> None:
    settings = {"epochs": 200, "max_steps": 400}
    real = blobs([0, 1], per_class=200)
    ratios = {}
    for noise in ("match", 0.0):
        memory = VAEMemory(**{**SMALL, **settings}, noise=noise)
        memory.learn(real, np.random.default_rng(0))
        drawn = memory.sample(0, 2000, np.random.default_rng(1))
        ratios[noise] = drawn.var(axis=0, ddof=1).mean() / real.of(0).var(axis=0, ddof=1).mean()
    assert 0.8 < ratios["match"] < 1.2
    assert ratios[0.0] < 0.8


def test_no_task_takes_more_steps_than_allowed() -> None:
    training = LimitedTraining(epochs=500, batch_size=10, max_steps=100)
    assert [training.steps_for(count) for count in (10, 20, 300, 10_000)] == [100, 100, 90, 100]
    assert LimitedTraining(epochs=3, batch_size=10, max_steps=100).steps_for(20) == 6
    assert Training(epochs=500, batch_size=10).steps_for(10_000) == 500_000


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("decoder", "nullspace", "decoder is 'nullspace'. Did you mean 'null-space'"),
        ("inputs", "priors", "inputs is 'priors'. Did you mean 'prior'"),
        ("prior", "fpy", "prior is 'fpy'. Did you mean 'fpi'"),
        ("projection", "weights", "Choices: 'update', 'gradient'"),
        ("on_saturation", "ignore", "Choices: 'warn', 'fresh'"),
    ],
)
def test_settings_that_do_not_exist_are_refused(setting: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        VAEMemory(**{setting: value})


class Drawing(VAEFO):
    """Draws what a memory draws to find its noise, which is zero in the paper's samples."""

    def _protect(self, encoder: Any, decoder: Any, task: Any, x: Any, rng: Any) -> None:
        for label in task.classes:
            self._decode(label, DRAWS, rng)
        super()._protect(encoder, decoder, task, x, rng)


def test_the_literal_memory_is_the_file_that_a_reader_follows_bit_for_bit() -> None:
    sizes = {"hidden": SMALL["hidden"], "latent": SMALL["latent"]}
    steps = Steps(training=Training(epochs=SMALL["epochs"]))
    paper, drawing = VAEFO(**sizes, steps=steps), Drawing(**sizes, steps=steps)
    memory = make_memory("vae-fo-literal", **sizes, epochs=SMALL["epochs"])
    for classes in ([0, 1], [2], [3, 4]):
        for part in (paper, drawing, memory):
            part.learn(blobs(classes), np.random.default_rng(len(classes)))
        if len(memory.means_) == 2:  # what later tasks leave alone depends on what was drawn
            assert same_samples(paper, memory, [0, 1])
    assert same_samples(drawing, memory, [0, 1, 2, 3, 4])
    assert not same_samples(paper, memory, [3, 4])


def same_samples(one: VAEFO, other: VAEFO, labels: list[int]) -> bool:
    return all(
        np.array_equal(*(part.sample(y, 5, np.random.default_rng(1)) for part in (one, other)))
        for y in labels
    )


def test_the_steps_of_the_literal_memory_are_those_of_the_paper() -> None:
    literal, paper = LiteralSettings().steps, Steps()
    assert type(literal.decoders) is type(paper.decoders)
    assert astuple(literal.training)[:5] == astuple(paper.training)
    assert asdict(literal.prior).items() >= asdict(paper.prior).items()
    assert literal.prior.weight_among(10) == paper.prior.weight_among(10) == 900
    for step in ("normaliser", "change", "protect", "null_space"):
        assert getattr(literal, step) == getattr(paper, step)


def test_the_whole_method_fits_on_a_few_screens() -> None:
    assert inspect.getsource(vae_fo).count("\n") <= 350


def test_any_number_of_steps_can_be_trained() -> None:
    for steps in range(1, 31):
        memory = VAEMemory(hidden=4, latent=2, epochs=steps, batch_size=1000)
        memory.learn(blobs([0, 1]), np.random.default_rng(0))
        assert np.isfinite(memory.sample(0, 3, np.random.default_rng(0))).all()


@pytest.mark.parametrize(("schedule", "constant"), [("constant", True), ("one-cycle", False)])
def test_the_learning_rate_is_constant_or_has_one_peak(schedule: str, constant: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = torch.optim.Adam([weight], 0.5)
    schedule_, rates = SCHEDULES[schedule](optimiser, 40), []
    for _ in range(40):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule_.step()
    assert max(rates) == pytest.approx(0.5, abs=0.01)
    rises = np.diff(rates) > 0
    if constant:
        assert set(rates) == {0.5}
    else:
        assert rates[0] < 0.1
        assert rates[-1] < 0.05
        assert not np.diff(rises.astype(int)).clip(min=0).any()  # it never rises again


def test_the_table_of_departures_is_the_difference_between_the_presets() -> None:
    """``docs/paper.md`` has the table too, and ``experiments/literal.toml`` measures each row."""
    ours, literal = settings_of(make_memory("vae-fo")), settings_of(make_memory("vae-fo-literal"))
    assert literal.keys() == ours.keys()
    assert {name for name in ours if ours[name] != literal[name]} == {d.setting for d in DEPARTURES}
    for departure in DEPARTURES:
        assert getattr(LiteralSettings(), departure.setting) == departure.literal
        assert getattr(VAESettings(), departure.setting) == departure.ours
    for variant in ("vae-fod", "vae-fodce", "vae-ceo"):
        assert MEMORIES[f"{variant}-literal"] == MEMORIES[variant]


@pytest.mark.parametrize("progress", [0.0, 0.15, 0.3, 1.0])
def test_a_warm_up_weighs_the_divergence_of_eq_6(progress: float) -> None:
    rng = torch.Generator().manual_seed(0)
    x, x_hat, mu, prior_mean = (torch.randn(6, 4, generator=rng) for _ in range(4))
    data, sigma = Batch(x, prior_mean), mu.exp()
    likelihood = Normal(x_hat, 1.0).log_prob(x).sum(dim=1)
    divergence = kl_divergence(Normal(mu, sigma), Normal(prior_mean, 1.0)).sum(dim=1)
    found = WarmUp(0.3)(data, x_hat, mu, sigma, progress)
    torch.testing.assert_close(found, likelihood - min(1, progress / 0.3) * divergence)


def test_the_page_has_the_table_of_departures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text("utf-8")
    section = page.split("\n## Departures\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    assert [row[0] for row in rows] == [f"`{departure.setting}`" for departure in DEPARTURES]
    for row, departure in zip(rows, DEPARTURES, strict=True):
        for column, step in ((2, departure.step), (4, departure.replacement)):
            assert step is None or row[column] == f"`{step.__name__}`"
