"""Whitened coordinates, class factors and the density of the incremental VAE."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from frugalvae.errors import InputError
from frugalvae.interfaces import Task
from frugalvae.maths.networks import MLP
from frugalvae.maths.whitening import PrincipalWhitener, Whitener
from frugalvae.memories import make_memory
from frugalvae.memories.vae.density import LocalDecoder, LowRankGaussian
from frugalvae.memories.vae.memory import FactorVAEMemory, VAEMemory
from frugalvae.memories.vae.residual import align, class_directions
from frugalvae.memories.vae.whitened import WhitenedNormaliser
from frugalvae.tensors import TensorTask, to_array
from tests.conftest import SMALL, accuracy, blobs


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tensor_blobs(classes: list[int], **settings: Any) -> TensorTask:
    return TensorTask.of_arrays(blobs(classes, **settings), torch.device("cpu"))


def taught(*tasks: list[int], kind: type[VAEMemory] = FactorVAEMemory, **settings: Any) -> Any:
    memory, rng = kind(**{**SMALL, "factors": 2, **settings}), np.random.default_rng(0)
    for classes in tasks:
        memory.learn(blobs(classes), rng)
    return memory


def covariance_of(x: Tensor) -> Tensor:
    return torch.cov(x.double().T, correction=0)


# --------------------------------------------------------------------------- whitening


def test_the_shared_covariance_is_that_of_all_samples_whatever_the_tasks() -> None:
    together, apart = WhitenedNormaliser(), WhitenedNormaliser()
    together.learn(tensor_blobs([0, 1, 2, 3]))
    for classes in ([0, 1], [2], [3]):
        apart.learn(tensor_blobs(classes))
    every = [tensor_blobs(classes) for classes in ([0, 1], [2], [3])]
    centred = [t.of(c) - t.of(c).mean(dim=0) for t in every for c in t.classes]
    expected = covariance_of(torch.cat(centred))
    torch.testing.assert_close(apart.pooled_ / apart.count_, expected, rtol=1e-5, atol=1e-7)
    assert together.count_ == apart.count_ == 80


def test_normalised_samples_have_the_spread_that_it_tells() -> None:
    normaliser, task = WhitenedNormaliser(ridge=0.5), tensor_blobs([0, 1, 2])
    normaliser.learn(task)
    y = torch.cat([normaliser.normalise(label, task.of(label)) for label in task.classes])
    expected = normaliser.spread().square().diag().double()
    torch.testing.assert_close(covariance_of(y), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_restoring_undoes_normalising_with_roots_and_without(sign: float) -> None:
    x = normal(9, 4).abs()
    x[0, 0] = sign * x[0, 0]
    normaliser = WhitenedNormaliser()
    normaliser.learn(TensorTask(x, torch.zeros(9, dtype=torch.long)))
    assert normaliser.root_ == (sign > 0)
    again = normaliser.restore(0, normaliser.normalise(0, x))
    torch.testing.assert_close(again, x, rtol=1e-4, atol=1e-5)
    parts = normaliser.finish(0, normaliser.prepare(x))
    torch.testing.assert_close(parts, normaliser.normalise(0, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positive", [True, False])
def test_the_volume_is_the_determinant_of_the_derivative(positive: bool) -> None:
    x = normal(9, 3).abs() + 0.1 if positive else normal(9, 3)
    normaliser = WhitenedNormaliser()
    normaliser.learn(TensorTask(x, torch.zeros(9, dtype=torch.long)))
    derivative = torch.autograd.functional.jacobian(
        lambda row: normaliser.normalise(0, row[None])[0], x[4]
    )
    volume = float(normaliser.log_volume(0, x)[4])
    assert volume == pytest.approx(float(torch.linalg.slogdet(derivative)[1]), rel=1e-4)


def test_a_change_says_where_old_coordinates_are_now() -> None:
    normaliser, old = WhitenedNormaliser(), tensor_blobs([0, 1])
    assert normaliser.learn(old) is None
    before = normaliser.normalise(0, old.of(0))
    change = normaliser.learn(tensor_blobs([2, 3], spread=2.0))
    assert change is not None
    after = normaliser.normalise(0, old.of(0))
    torch.testing.assert_close(before @ change.forward, after, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(after @ change.backward, before, rtol=1e-3, atol=1e-4)


def test_one_sample_can_be_whitened_too() -> None:
    whitener = PrincipalWhitener.of(torch.zeros(3, 3), 0.2)
    assert whitener.spread.eq(0).all()
    torch.testing.assert_close(whitener.matrix @ whitener.inverse, torch.eye(3).double())


def test_both_whiteners_agree_but_for_a_rotation() -> None:
    x = normal(40, 5).double() @ normal(5, 5, seed=1).double()
    one, other = PrincipalWhitener.of(x.T @ x, 0.3), Whitener.of((x.T @ x).numpy(), 0.3)
    white, same = one.whiten(x).numpy(), other.whiten(x.numpy())
    np.testing.assert_allclose(white @ white.T, same @ same.T, atol=1e-9)
    np.testing.assert_allclose(one.unwhiten(torch.tensor(white)), x, atol=1e-9)
    np.testing.assert_allclose(other.unwhiten(same), x, atol=1e-9)
    assert float(one.log_det) == pytest.approx(other.log_det)


# --------------------------------------------------------------------------- factors


def test_factors_and_noise_make_up_the_covariance_of_a_class() -> None:
    spread, own = torch.full((5,), 0.5), torch.tensor([3.0, 0, 0, 0, 0])
    real = normal(20000, 5) * spread + normal(20000, 1, seed=1) * own
    factors = class_directions(real, torch.zeros(1, 5), spread, 1)
    torch.testing.assert_close((factors @ factors.T).diag(), own.square(), rtol=0.05, atol=0.01)


def test_what_is_decoded_needs_no_factor() -> None:
    own = torch.tensor([3.0, 0, 0, 2.0, 0])
    real = normal(20000, 5) + normal(20000, 1, seed=1) * own
    decoded = normal(20000, 1, seed=2) * own
    factors = class_directions(real, decoded, torch.ones(5), 2)
    assert float(factors.square().sum()) < 0.2


def test_a_class_of_few_samples_has_as_many_factors_of_which_some_are_zero() -> None:
    factors = class_directions(normal(3, 8), torch.zeros(1, 8), torch.zeros(8), 5)
    assert factors.shape == (8, 5)
    assert factors[:, 3:].eq(0).all()


def test_factors_that_are_turned_describe_the_same() -> None:
    factors = normal(3, 6, 2)
    turned = align(factors)
    same = factors @ factors.transpose(1, 2)
    torch.testing.assert_close(turned @ turned.transpose(1, 2), same, rtol=1e-4, atol=1e-5)
    turns = torch.linalg.qr(normal(3, 2, 2, seed=1)).Q
    one = factors[:1].expand(3, 6, 2) @ turns  # the same factors, turned differently
    torch.testing.assert_close(align(one)[1:], align(one)[:1].expand(2, 6, 2))


def test_a_decoder_can_be_taught_the_directions_of_classes_and_needs_no_encoder() -> None:
    memory = FactorVAEMemory(hidden=64, latent=6, directions=2, factors=0, max_steps=600)
    wide = {label: 3 * normal(8, 1, seed=label) for label in (0, 1, 2)}
    for classes in ([0, 1], [2]):
        rows = [
            normal(300, 8, seed=5 + c) + normal(300, 1, seed=9 + c) @ wide[c].T for c in classes
        ]
        task = Task(to_array(torch.cat(rows)), np.repeat(classes, 300))
        memory.learn(task, np.random.default_rng(0))
    assert memory.encoder_ is None
    for label, direction in wide.items():
        network = memory.decoders_[0].network
        jacobian = network.jacobian(memory.means_[label][None]).detach()
        among_features = memory.normaliser_.whitener.inverse.T.float() @ jacobian
        leading = torch.linalg.svd(among_features).U[:, 0]
        assert float((leading @ direction).abs() / direction.norm()) > 0.8


def test_what_needs_an_encoder_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="needs an encoder, and with directions=8 there is none"):
        FactorVAEMemory(inputs="posterior")


# --------------------------------------------------------------------------- density


def test_a_gaussian_of_few_directions_agrees_with_the_dense_one() -> None:
    factors, x = normal(6, 2).double(), normal(9, 6, seed=1).double()
    dense = 0.49 * torch.eye(6).double() + factors @ factors.T
    gaussian = LowRankGaussian(factors, 0.7)
    expected = MultivariateNormal(torch.zeros(6).double(), dense).log_prob(x)
    torch.testing.assert_close(gaussian.log_density(x), expected)
    torch.testing.assert_close(gaussian.solve(x), torch.linalg.solve(dense, x.T).T)


@pytest.mark.parametrize("size", [0.0, 1.5])
@pytest.mark.parametrize("draws", [0, 1, 7])
def test_the_bound_of_a_linear_decoder_is_exact_whatever_the_draws(size: float, draws: int) -> None:
    matrix, factors = size * normal(6, 3).double(), normal(6, 2, seed=1).double()
    x, everything = normal(9, 6, seed=2).double(), torch.eye(6).double()
    local = LocalDecoder(lambda z: z @ matrix.T, matrix, factors, 0.7, everything)
    dense = 0.49 * everything + matrix @ matrix.T + factors @ factors.T
    expected = MultivariateNormal(torch.zeros(6).double(), dense).log_prob(x)
    torch.testing.assert_close(local.log_density(x, normal(draws, 3).double()), expected)


@pytest.mark.parametrize("sizes", [(1, 8, 3), (2, 8, 3), (2, 3, 7)])
def test_the_bound_of_a_bent_decoder_comes_close_to_the_integral(sizes: tuple[int, ...]) -> None:
    latent, *_, dim = sizes
    network = MLP(sizes, rng=torch.Generator().manual_seed(5)).double()
    mean, x, factors = torch.full((latent,), 0.3).double(), normal(5, dim), normal(dim, 1, seed=5)
    x, factors = x.double(), factors.double()
    with torch.no_grad():
        local = LocalDecoder.around(network, mean, None, 0.8, factors, 0.5)
        bound = local.log_density(x, normal(4000, latent).double())
        linear = local.log_density(x, normal(0, latent).double())
        axis = torch.linspace(-7, 7, 401).double()
        z = torch.cartesian_prod(*[axis] * latent).view(-1, latent)
        added = 0.8**0.5 * (network(mean + z) - network(mean[None]))
    assert local.span.shape[1] == min(dim, sizes[1] + 1)
    expected = integral(z, added, 0.8**0.5 * factors, 0.5, x)
    torch.testing.assert_close(bound, expected, rtol=0, atol=0.05)
    assert float((linear - expected).abs().max()) > 0.1  # it is bent


def integral(z: Tensor, decoded: Tensor, factors: Tensor, noise: float, x: Tensor) -> Tensor:
    """The density by summing over a fine grid of latents."""
    log_prior = -0.5 * (z.square() + math.log(2 * math.pi)).sum(dim=1)
    seen = LowRankGaussian(factors, noise)
    log_seen = torch.stack([seen.log_density(row - decoded) for row in x])
    cell = z.shape[1] * math.log(float(z[1, -1] - z[0, -1]))
    return (log_seen + log_prior).logsumexp(dim=1) + cell


@pytest.mark.parametrize("embedding", [0, 3])
def test_the_jacobian_is_the_derivative(embedding: int) -> None:
    network = MLP([4, 9, 9, 5], embedding, rng=torch.Generator().manual_seed(0))
    network.add_classes(2, torch.Generator().manual_seed(1))
    row = torch.tensor([1]) if embedding else None
    x = normal(1, 4)
    expected = torch.autograd.functional.jacobian(lambda z: network(z[None], row)[0], x[0])
    torch.testing.assert_close(network.jacobian(x, row), expected)


def test_without_a_decoder_the_density_is_the_gaussian_of_the_features() -> None:
    memory = taught([0, 1], [2], share=0.3)
    silence(memory)
    x = tensor_blobs([0, 1, 2], seed=4).features
    pooled = memory.normaliser_.pooled_ / memory.normaliser_.count_
    ridged = pooled + 0.2 * pooled.diagonal().mean() * torch.eye(8)
    columns = []
    for label in memory.classes:
        factors = memory.normaliser_.whitener.inverse.T @ memory.factors_[label].double()
        dense = ridged + 0.3 * factors @ factors.T
        mean = memory.normaliser_.mean_[label].double()
        columns.append(MultivariateNormal(mean, dense).log_prob(x.double()))
    expected = torch.stack(columns, dim=1)
    for draws in (8, 0):
        found = memory.log_density(to_array(x), draws=draws)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)


def silence(memory: VAEMemory) -> None:
    for decoder in memory.decoders_:
        for part in decoder.network.linears[-1].parameters():
            part.data.zero_()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"classwise": False, "epochs": 300, "max_steps": 300},
        {"dynamic": True, "embedding": 3},
        {"prior": "single", "embedding": 3},
        {"whitened": True},
        {"factors": 2},
        {"directions": 2},
        {"whitened": True, "directions": 2, "decoder": "frozen"},
        {"whitened": True, "factors": 2, "dynamic": True, "embedding": 3},
    ],
)
def test_every_variant_has_a_density_that_finds_the_class(settings: dict[str, Any]) -> None:
    memory = taught([3, 1], [2], kind=VAEMemory, **{"factors": 0, **settings})
    test = blobs([1, 2, 3], seed=7)
    for draws in (0, 4):
        density = memory.log_density(test.features, draws=draws)
        assert density.shape == (60, 3)
        assert np.isfinite(density).all()
        found = np.array(memory.classes)[density.argmax(axis=1)]
        assert accuracy(test.labels, found) > 0.95
        assert np.array_equal(density, memory.log_density(test.features, draws=draws))


def test_densities_integrate_to_one() -> None:
    """In two dimensions, by a grid: the normalisation's volume is part of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2)) @ [[1.0, 0.5], [0.0, 0.3]]
    for settings in ({}, {"whitened": True, "factors": 1}):
        memory = VAEMemory(**{**SMALL, "latent": 2}, **settings)
        memory.learn(Task(x, np.arange(40) % 2), rng)
        axis = np.linspace(-6, 6, 121)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        total = np.exp(memory.log_density(grid, draws=4)).sum(axis=0) * (axis[1] - axis[0]) ** 2
        np.testing.assert_allclose(total, 1, rtol=0.05, atol=0)


# --------------------------------------------------------------------------- task by task


def around(memory: VAEMemory, label: int) -> Tensor:
    """Where latents at and around a class's mean are decoded to, among features."""
    network = memory.decoders_[memory.route_[label]].network
    with torch.no_grad():
        return memory.normaliser_.restore(label, network(memory.means_[label][None]))


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_old_classes_are_decoded_to_stays_while_the_coordinates_move(dynamic: bool) -> None:
    memory = taught([0, 1], [2], dynamic=dynamic, inputs="prior-mean")
    before = [around(memory, label) for label in (0, 1, 2)]
    coordinates = memory.normaliser_.whitener.matrix.clone()
    memory.learn(blobs([3, 4], spread=1.0), np.random.default_rng(1))
    assert not torch.allclose(memory.normaliser_.whitener.matrix, coordinates, atol=0.1)
    for label, old in zip((0, 1, 2), before, strict=True):
        torch.testing.assert_close(around(memory, label), old, rtol=1e-3, atol=1e-3)


def test_factors_of_old_classes_stay_where_they_are_among_features() -> None:
    memory = taught([0, 1], decoder="frozen")
    before = memory.normaliser_.whitener.inverse.T @ memory.factors_[1].double()
    memory.learn(blobs([2], spread=1.0), np.random.default_rng(1))
    after = memory.normaliser_.whitener.inverse.T @ memory.factors_[1].double()
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)


def test_the_encoder_says_of_a_sample_what_it_said_before_the_coordinates_moved() -> None:
    memory, x = taught([0, 1], directions=0), tensor_blobs([0]).features
    before = memory.encoder_(memory.normaliser_.normalise(0, x))
    moved = copy.deepcopy(memory)
    moved._learn_normaliser(tensor_blobs([2], spread=1.0))
    after = moved.encoder_(moved.normaliser_.normalise(0, x))
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-3)


def test_samples_have_the_mean_and_covariance_of_their_class() -> None:
    x = to_array(normal(4000, 8, seed=1) @ normal(8, 8) + 3)
    memory = FactorVAEMemory(**SMALL, factors=2)
    memory.learn(Task(x, np.zeros(4000, int)), np.random.default_rng(0))
    drawn = memory.sample(0, 20000, np.random.default_rng(1))
    real, found = np.cov(x.T, bias=True), np.cov(drawn.T, bias=True)
    assert np.linalg.norm(drawn.mean(axis=0) - x.mean(axis=0)) < 0.3
    assert np.linalg.norm(found - real) / np.linalg.norm(real) < 0.1


# --------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    "settings", [{}, {"dynamic": True}, {"factors": 0}, {"directions": 0}, {"embedding": 3}]
)
def test_numbers_are_counted_as_they_are_stored(settings: dict[str, Any]) -> None:
    memory = taught([0, 1], [2], **settings)
    parts, arrays = memory.components(), memory.arrays()
    assert sum(part.stored for part in parts) == sum(array.size for array in arrays.values())
    assert sum(part.bytes for part in parts) == sum(array.nbytes for array in arrays.values())


@pytest.mark.parametrize("dim", [512, 768, 1280])
@pytest.mark.parametrize("classes", [100, 200])
def test_it_takes_no_more_numbers_than_the_papers_vae(dim: int, classes: int) -> None:
    ours, papers = (
        sum(part.paper for part in make_memory(name).cost(dim, classes, 10))
        for name in ("vae-factors", "vae-fo")
    )
    assert ours <= papers


def test_the_plan_is_what_a_memory_with_usual_settings_stores() -> None:
    memory = make_memory("vae-factors", epochs=1, max_steps=1)
    memory.learn(blobs([0, 1]), np.random.default_rng(0))
    assert memory.components() == memory.cost(8, 2, 1)
