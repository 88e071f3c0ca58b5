from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from frugalvae.errors import InputError
from frugalvae.paper.equations import fixed_point_step
from frugalvae.paper.placement import Anderson, Placement, Prior
from frugalvae.paper.priors import (
    FixedPointPrior,
    NormalPrior,
    SinglePrior,
    UniformPrior,
    make_prior,
    smallest_distance,
)

WEIGHT = 8.0
EXACT = FixedPointPrior(weight=WEIGHT, divide_by="nothing", tolerance=1e-11, max_iterations=5000)
PRIORS = [FixedPointPrior(), NormalPrior(), UniformPrior(), SinglePrior()]
DRAWING = [FixedPointPrior(), NormalPrior(), UniformPrior()]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.float64)


def place(
    prior: Prior, data_means: Tensor, fixed: Tensor | None = None, seed: int = 0
) -> Placement:
    fixed = data_means[:0] if fixed is None else fixed
    return prior.place(data_means, fixed, seeded(seed))


def distances(means: Tensor) -> list[float]:
    return [float((a - b).norm()) for a, b in itertools.combinations(means, 2)]


# --------------------------------------------------------------------------- closed forms


def test_two_classes_at_one_point_part_to_the_closed_form_distance() -> None:
    means = place(EXACT, zeros(2, 3)).means
    assert distances(means) == pytest.approx([math.sqrt(2 * WEIGHT)])
    torch.testing.assert_close(means[0], -means[1])


@pytest.mark.parametrize(("n_classes", "latent"), [(3, 2), (4, 3), (5, 8), (6, 5)])
def test_classes_from_one_point_become_a_regular_simplex(n_classes: int, latent: int) -> None:
    """All K - 1 others at one distance D: a radius r has r^2 = D^2 (K-1)/2K = lambda (K-1)/2."""
    means = place(EXACT, zeros(n_classes, latent)).means
    radius = math.sqrt(WEIGHT * (n_classes - 1) / 2)
    assert means.norm(dim=1).tolist() == pytest.approx([radius] * n_classes)
    side = math.sqrt(WEIGHT * n_classes)
    assert distances(means) == pytest.approx([side] * math.comb(n_classes, 2))


def test_mean_squared_radius_has_a_closed_form_where_no_simplex_fits() -> None:
    """Sum mu_y . Eq. 5 over y: every one of the K (K-1) / 2 pairs contributes lambda."""
    n_classes = 9
    means = place(EXACT, zeros(n_classes, 2)).means
    squared = means.square().sum(dim=1)
    assert float(squared.mean()) == pytest.approx(WEIGHT * (n_classes - 1) / 2)
    assert float(squared.max() - squared.min()) > 1  # not all at one radius


def test_work_of_the_repulsion_is_the_weight_for_every_pair() -> None:
    data_means = 3 * normal(6, 4)
    means = place(EXACT, data_means).means
    work = float((means * (means - data_means)).sum())
    assert work == pytest.approx(WEIGHT * math.comb(6, 2))


def test_repulsion_does_not_move_the_centre_of_all_classes() -> None:
    data_means = 5 + 3 * normal(6, 4)
    torch.testing.assert_close(place(EXACT, data_means).means.mean(dim=0), data_means.mean(dim=0))


def test_class_beside_an_old_one_stands_at_the_root_of_a_quadratic() -> None:
    """On the line through both: mu = lambda / (mu - p), on the far side of the origin."""
    old = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    means = place(EXACT, zeros(1, 2), fixed=old).means
    along = (5 - math.sqrt(25 + 4 * WEIGHT)) / 2
    torch.testing.assert_close(means, along * old / 5, rtol=1e-8, atol=1e-8)


def test_class_on_top_of_an_old_one_leaves_it() -> None:
    old = normal(1, 3)
    means = place(EXACT, old.clone(), fixed=old).means
    assert float((means - old).norm()) == pytest.approx(math.sqrt(WEIGHT))


def test_single_class_stays_at_its_data() -> None:
    data_means = normal(1, 4)
    torch.testing.assert_close(place(EXACT, data_means).means, data_means)


# --------------------------------------------------------------------------- convergence


def test_converged_means_are_a_fixed_point_with_old_ones() -> None:
    data_means, old = normal(4, 3), 3 * normal(5, 3, seed=1)
    placement = place(EXACT, data_means, old)
    stepped = fixed_point_step(data_means, placement.means, WEIGHT, old)
    torch.testing.assert_close(stepped, placement.means, rtol=1e-9, atol=1e-9)
    assert placement.converged
    assert 0 < placement.residual < EXACT.tolerance
    assert 1 < placement.iterations < EXACT.max_iterations


def test_default_settings_converge_task_after_task() -> None:
    old = zeros(0, 64)
    for task in range(4):
        placement = place(FixedPointPrior(), 0.1 * normal(10, 64, seed=task), old)
        assert placement.converged
        assert placement.residual < 1e-5
        old = torch.cat([old, placement.means])
    assert smallest_distance(old) > 3


def test_iteration_cut_short_says_so() -> None:
    placement = place(FixedPointPrior(max_iterations=1), normal(5, 3))
    assert not placement.converged
    assert placement.iterations == 1
    assert placement.residual > 1e-3


def test_iteration_never_begun_claims_nothing() -> None:
    placement = place(FixedPointPrior(max_iterations=0), normal(5, 3))
    assert (placement.iterations, placement.residual, placement.converged) == (0, math.inf, False)


@pytest.mark.parametrize("damping", [0.5, 0.2])
def test_residual_is_the_undamped_change_of_the_last_step(damping: float) -> None:
    before, after = (
        place(FixedPointPrior(damping=damping, max_iterations=count), normal(5, 3))
        for count in (3, 4)
    )
    change = float((after.means - before.means).norm()) / damping
    assert after.residual == pytest.approx(change / float(after.means.norm()))


def test_looser_tolerance_stops_earlier() -> None:
    loose, strict = (
        place(FixedPointPrior(tolerance=tolerance), normal(5, 3)) for tolerance in (1e-2, 1e-6)
    )
    assert loose.converged
    assert strict.residual < 1e-6 < loose.residual < 1e-2
    assert loose.iterations < strict.iterations


@pytest.mark.parametrize("n_old", [0, 5])
def test_acceleration_leads_to_the_same_fixed_point(n_old: int) -> None:
    data_means, old = 3 * normal(6, 4), 3 * normal(n_old, 4, seed=1)
    plain, accelerated = (
        place(replace(EXACT, history=history), data_means, old) for history in (0, 8)
    )
    assert plain.converged
    assert accelerated.converged
    torch.testing.assert_close(accelerated.means, plain.means, rtol=1e-8, atol=1e-8)


def test_acceleration_saves_most_of_the_steps_of_many_classes() -> None:
    """Latents that lie close together, as those of an untrained encoder do, part slowly."""
    data_means = 0.1 * normal(200, 64)
    plain, accelerated = (place(FixedPointPrior(history=history), data_means) for history in (0, 8))
    assert plain.converged
    assert accelerated.converged
    assert accelerated.iterations <= plain.iterations / 3
    torch.testing.assert_close(accelerated.means, plain.means, rtol=0, atol=0.02)


def test_undamped_iteration_of_two_coincident_classes_never_settles() -> None:
    """Each distance d is followed by 2 lambda / d, and that by d again."""
    placement = place(FixedPointPrior(damping=1.0, history=0, max_iterations=50), zeros(2, 3))
    assert not placement.converged
    assert placement.iterations == 50


# --------------------------------------------------------------------------- settings, old means


def test_old_means_repel_and_are_not_moved() -> None:
    data_means, old = normal(3, 4), normal(2, 4, seed=1)
    untouched = old.clone()
    with_old = place(EXACT, data_means, old).means
    assert with_old.shape == data_means.shape
    assert torch.equal(old, untouched)
    assert (with_old - place(EXACT, data_means).means).norm() > 0.1
    together = torch.cat([with_old, old])
    assert smallest_distance(together) > smallest_distance(torch.cat([data_means, old]))


def test_data_means_are_not_overwritten() -> None:
    data_means = normal(3, 4)
    for prior in PRIORS:
        place(prior, data_means)
        assert torch.equal(data_means, normal(3, 4))


@pytest.mark.parametrize(("divide_by", "divisor"), [("pairs", 5 * 4), ("others", 4)])
def test_weight_is_divided_by_counts_of_new_and_old_classes(
    divide_by: Literal["pairs", "others"], divisor: int
) -> None:
    data_means, old = normal(3, 4), normal(2, 4, seed=1)
    divided = place(FixedPointPrior(weight=divisor * WEIGHT, divide_by=divide_by), data_means, old)
    literal = place(FixedPointPrior(weight=WEIGHT, divide_by="nothing"), data_means, old)
    torch.testing.assert_close(divided.means, literal.means)


def test_divided_by_others_the_radius_does_not_depend_on_how_many_classes_there_are() -> None:
    for n_classes in (2, 10, 60):
        radius = place(FixedPointPrior(), zeros(n_classes, 64)).means.norm(dim=1)
        torch.testing.assert_close(
            radius, torch.full_like(radius, math.sqrt(450)), rtol=0, atol=1e-3
        )


def test_literal_weight_of_the_paper_puts_a_hundred_classes_beyond_radius_200() -> None:
    literal = FixedPointPrior(divide_by="nothing", max_iterations=50)
    radius = float(place(literal, zeros(100, 16)).means.square().sum(dim=1).mean().sqrt())
    assert radius == pytest.approx(math.sqrt(900 * 99 / 2), rel=1e-3)
    assert radius > 200


def test_more_weight_means_more_distance() -> None:
    near, far = (
        smallest_distance(place(FixedPointPrior(weight=weight), normal(5, 3)).means)
        for weight in (10.0, 1000.0)
    )
    assert far > 5 * near


# --------------------------------------------------------------------------- random priors


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_normal_means_have_the_moments_of_the_normal(scale: float) -> None:
    means = place(NormalPrior(scale), 100 + zeros(2000, 10)).means
    assert abs(float(means.mean())) < 0.03 * scale
    assert float(means.std()) == pytest.approx(scale, rel=0.02)
    assert float(means.abs().max()) > 3 * scale


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_uniform_means_fill_the_cube(scale: float) -> None:
    means = place(UniformPrior(scale), 100 + zeros(2000, 10)).means
    assert float(means.max()) == pytest.approx(scale, rel=0.01)
    assert float(means.min()) == pytest.approx(-scale, rel=0.01)
    assert means.abs().max() <= scale
    assert float(means.std()) == pytest.approx(scale / math.sqrt(3), rel=0.02)


def test_single_prior_puts_all_classes_at_the_origin() -> None:
    assert torch.equal(place(SinglePrior(), normal(3, 4)).means, zeros(3, 4))


@pytest.mark.parametrize("prior", [NormalPrior(), UniformPrior(), SinglePrior()])
def test_placement_without_iteration_counts_as_converged(prior: Prior) -> None:
    placement = place(prior, normal(3, 4))
    assert (placement.iterations, placement.residual, placement.converged) == (0, 0.0, True)


@pytest.mark.parametrize("prior", DRAWING)
def test_same_seed_gives_the_same_means_and_another_seed_others(prior: Prior) -> None:
    first, again, other = (place(prior, zeros(3, 4), seed=seed).means for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other, atol=1e-2)


@pytest.mark.parametrize("prior", DRAWING)
def test_global_random_state_plays_no_part(prior: Prior) -> None:
    before = torch.get_rng_state()
    place(prior, zeros(3, 4))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_means_have_the_precision_of_the_data(prior: Prior, dtype: torch.dtype) -> None:
    assert place(prior, normal(3, 4).to(dtype)).means.dtype == dtype


# --------------------------------------------------------------------------- by name


@pytest.mark.parametrize(
    ("name", "prior"), list(zip(["fpi", "normal", "uniform", "single"], PRIORS, strict=True))
)
def test_prior_is_made_by_name_or_taken_as_it_is(name: str, prior: Prior) -> None:
    assert make_prior(name) == prior
    assert make_prior(prior) is prior


def test_unknown_prior_is_answered_with_the_nearest_and_all_names() -> None:
    with pytest.raises(InputError) as caught:
        make_prior("unifrom")
    start, known = str(caught.value).split(" Choices: ")
    assert start == "prior is 'unifrom'. Did you mean 'uniform'?"
    assert set(known.split(", ")) >= {"'fpi'", "'normal'", "'uniform'", "'single'"}


# --------------------------------------------------------------------------- smallest distance


def test_smallest_distance_is_that_of_the_closest_pair() -> None:
    means = normal(7, 3)
    assert smallest_distance(means) == pytest.approx(min(distances(means)))


@pytest.mark.parametrize("n_classes", [0, 1])
def test_smallest_distance_without_a_pair_is_infinite(n_classes: int) -> None:
    assert smallest_distance(zeros(n_classes, 3)) == math.inf


@pytest.mark.parametrize("gap", [0.0, 3.0])
def test_smallest_distance_of_two_is_theirs(gap: float) -> None:
    assert smallest_distance(torch.tensor([[0.0], [gap]])) == gap


# --------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("weight", [0, 1e9], [-1e-9]),
        ("damping", [1e-6, 1], [0, 1.01, -0.5]),
        ("history", [0, 1000], [-1, 1001, 2.5]),
        ("tolerance", [0, 1], [-1e-9]),
        ("max_iterations", [0, 1_000_000], [-1, 1_000_001, 2.5]),
        ("divide_by", ["others", "pairs", "nothing"], ["pair"]),
    ],
)
def test_settings_have_limits(name: str, right: list[object], wrong: list[object]) -> None:
    for value in right:
        assert getattr(replace(FixedPointPrior(), **{name: value}), name) == value
    for value in wrong:
        with pytest.raises(InputError, match=f"^{name} is "):
            replace(FixedPointPrior(), **{name: value})


def test_a_single_class_has_the_whole_weight() -> None:
    for divide_by in ("others", "pairs", "nothing"):
        prior = FixedPointPrior(weight=WEIGHT, divide_by=divide_by)
        assert prior.weight_among(0) == prior.weight_among(1) == WEIGHT
        assert prior.weight_among(4) == WEIGHT / {"others": 3, "pairs": 12, "nothing": 1}[divide_by]
    assert NormalPrior() == NormalPrior(1.0)
    named = [make_prior(name) for name in ("fpi", "fpi-pairs", "fpi-literal")]
    assert [each.divide_by for each in named] == ["others", "pairs", "nothing"]  # type: ignore[attr-defined]


def test_means_begin_at_the_data_but_for_an_offset_and_go_half_way_back() -> None:
    target = 1e-4 * normal(2, 3)
    offset = 1e-3 * zeros(2, 3).normal_(generator=seeded())
    placement = place(FixedPointPrior(weight=0, max_iterations=1), target)
    torch.testing.assert_close(placement.means, target + offset / 2)
    assert placement.residual == pytest.approx(float(offset.norm() / placement.means.norm()))


# --------------------------------------------------------------------------- acceleration


def twin(points: list[Tensor], changes: list[Tensor], damping: float) -> Tensor:
    """Anderson's next point, by least squares over the differences of the last steps."""
    x, f = (torch.stack(each, dim=1) for each in (points, changes))
    steps, differences = x.diff(dim=1), f.diff(dim=1)
    mix = torch.linalg.lstsq(differences, f[:, -1:]).solution[:, 0]
    plain = points[-1] + damping * changes[-1]
    return plain - steps @ mix - damping * differences @ mix


@pytest.mark.parametrize("history", [0, 1, 3])
def test_steps_are_plain_and_then_combine_the_last(
    history: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Anderson, "first_plain_steps", 2)
    stepping = Anderson(0.3, history)
    points, changes = list[Tensor](), list[Tensor]()
    for step in range(7):
        point, change = normal(2, 6, seed=step)
        change = change / change.norm()
        points, changes = [*points, point][-history - 1 :], [*changes, change][-history - 1 :]
        accelerated = step >= 2 and history
        expected = twin(points, changes, 0.3) if accelerated else point + 0.3 * change
        found = stepping.next(point.view(2, 3), change.view(2, 3)).flatten()
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_acceleration_starts_over_after_a_change_of_more_than_twice_the_smallest() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    for size, plain in ((1.0, False), (1.01, True)):
        stepping = Anderson(0.5, 4)
        stepping.plain_steps_left = 0
        for change in (0.5, 0.75):
            stepping.next(change * one, change * one)
        assert stepping.best == 0.5
        stepping.next(3 * one, size * one)
        assert (len(stepping.points) == 1) is plain
        assert (stepping.plain_steps_left == 19) is plain
        assert stepping.best == (size if plain else 0.5)
