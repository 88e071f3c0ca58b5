"""The moment memory: sums in any order, merging, taking out, budgets, files; against plain sums."""

from __future__ import annotations

import copy
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.maths.arrays import Array, leading, rotate
from frugalvae.maths.gaussians import SHRINKAGE
from frugalvae.moments.budget import Budget, usual_bytes
from frugalvae.moments.evidence import Evidence
from frugalvae.moments.memory import MomentMemory
from frugalvae.moments.sums import (
    restore_rows,
    restore_symmetric,
    round_rows,
    round_symmetric,
)
from frugalvae.parts.protocols import Task
from frugalvae.testing.memories import survives_a_file
from frugalvae.testing.rules import ContractError

DIM = 10
#: Budgets under which the samples below fit; all coordinates keep a covariance; only some do.
WHOLE, CUT, FEW = None, "750B", 140


def samples(
    sizes: tuple[int, ...] = (30, 12, 7, 3, 1), dim: int = DIM, seed: int = 0, apart: float = 3.0
) -> Task:
    """Classes of these sizes, each with a mean and a shape of its own."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(dim, dim)) / dim**0.5
    rows = [
        apart * rng.normal(size=dim)
        + rng.normal(size=(size, dim)) @ (common + 0.5 * rng.normal(size=(dim, dim)) / dim**0.5)
        for size in sizes
    ]
    return Task(np.concatenate(rows).astype(np.float32), np.arange(len(sizes)).repeat(sizes))


def part(task: Task, rows: Any) -> Task:
    return Task(task.features[rows], task.labels[rows])


def taught(*tasks: Task, **how: Any) -> MomentMemory:
    memory = MomentMemory(**{"root": False} | how)
    for task in tasks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some budgets here are smaller than the means
            memory.learn(task, np.random.default_rng(0))
    return memory


def scatter_of(x: Array) -> Array:
    """The scatter of samples, as a plain sum."""
    centred = x.astype(np.float64) - x.astype(np.float64).mean(axis=0)
    return centred.T @ centred


def own_scatter(memory: MomentMemory, label: int) -> Array:
    root = memory.sums_.roots[label].astype(np.float64)
    return root.T @ root


def close(found: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """Equal, relative to the largest entry."""
    scale = max(float(np.abs(expected).max(initial=0)), 1e-12)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def holds(memory: MomentMemory, task: Task) -> None:
    """The memory has the counts, means and scatters of these samples, and of no others."""
    assert sorted(memory.classes) == task.classes
    total = np.zeros((task.features.shape[1],) * 2)
    for label in task.classes:
        x = task.of(label)
        own = scatter_of(x)
        total += own
        assert memory.counts_[label] == len(x)
        close(memory.sums_.means[label], x.astype(np.float64).mean(axis=0))
        assert memory.sums_.squares[label] == pytest.approx(np.trace(own), rel=1e-5, abs=1e-4)
        assert len(memory.sums_.roots[label]) <= max(0, len(x) - 1)
        if memory.sums_.is_whole:
            close(own_scatter(memory, label), own)
    if not memory.sums_.is_whole:
        turned = total
        if memory.sums_.rank < len(total):
            turned = rotate(rotate(total, memory.sums_.rank).T, memory.sums_.rank)
        close(memory.sums_.scatter, turned)
        beside = np.trace(total) - np.trace(turned)
        assert memory.sums_.other_squares == pytest.approx(beside, rel=1e-4, abs=1e-4)


def cut_below(memory: MomentMemory, task: Task) -> None:
    """What is missing of a class's scatter is no negative variance, and ``lost`` tells its size."""
    for label in task.classes:
        own = scatter_of(task.of(label))
        squares = float(np.trace(own))
        if memory.sums_.rank < len(own):
            own = rotate(rotate(own, memory.sums_.rank).T, memory.sums_.rank)
        missing = own - own_scatter(memory, label)
        assert np.linalg.eigvalsh(missing)[0] >= -1e-5 * squares - 1e-6
        gone = squares - np.trace(own_scatter(memory, label))
        assert memory.sums_.lost_share(label) * squares == pytest.approx(
            gone, rel=1e-3, abs=1e-4 * squares
        )


def same_answers(memory: MomentMemory, twin: MomentMemory, x: Array) -> None:
    one, other = memory.log_density(x), twin.log_density(x)
    order = [twin.classes.index(label) for label in memory.classes]
    close(one, other[:, order], 1e-4)
    best = np.sort(one, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-3 * np.abs(one).max() if one.shape[1] > 1 else ...
    assert (one.argmax(axis=1) == other[:, order].argmax(axis=1))[clear].all()


@st.composite
def partitions(draw: Any, size: int, most: int = 6) -> list[Array]:
    """Rows in any order, in batches of any sizes."""
    order = np.array(draw(st.permutations(range(size))))
    cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=most - 1)))
    return np.split(order, cuts)


def budgets() -> Any:
    return pytest.mark.parametrize("budget", [WHOLE, CUT, FEW])


# --------------------------------------------------------------------------- streams


def test_the_budgets_of_these_tests_are_what_they_say() -> None:
    whole, cut, few = (taught(samples(), budget=budget) for budget in (WHOLE, CUT, FEW))
    assert whole.sums_.is_whole
    assert all(whole.sums_.lost_share(label) < 1e-6 for label in whole.classes)
    assert not cut.sums_.is_whole
    assert cut.sums_.rank == DIM
    assert max(cut.sums_.lost_share(label) for label in cut.classes) > 0.05
    assert not few.sums_.is_whole
    assert 0 < few.sums_.rank < DIM


@budgets()
@settings(max_examples=15)
@given(data=st.data())
def test_batches_in_any_order_give_the_same_sums(budget: Any, data: st.DataObject) -> None:
    task = samples()
    batches = data.draw(partitions(len(task.labels)))
    memory = taught(*(part(task, rows) for rows in batches), budget=budget)
    holds(memory, task)
    if budget is WHOLE:
        same_answers(memory, taught(task), samples(seed=1).features)
    else:
        cut_below(memory, task)


@budgets()
def test_single_samples_give_the_same_sums(budget: Any) -> None:
    task = samples()
    order = np.random.default_rng(1).permutation(len(task.labels))
    memory = taught(*(part(task, [row]) for row in order), budget=budget)
    holds(memory, task)
    cut_below(memory, task)
    if budget is WHOLE:
        same_answers(memory, taught(task), samples(seed=1).features)


def test_an_update_is_a_batch_of_one_class() -> None:
    task = samples()
    first = np.arange(len(task.labels)) % 2 == 0
    memory = taught(part(task, first))
    for label in task.classes:
        more = part(task, ~first & (task.labels == label))
        if len(more.labels):
            memory.update(more, memory.counts_[label], np.random.default_rng(0))
    holds(memory, task)


def test_rows_mix_all_samples() -> None:
    """No row is a sample around the class mean, nor a multiple of one."""
    task = samples((6, 6))
    memory = taught(task)
    for label in task.classes:
        x = task.of(label) - task.of(label).mean(axis=0)
        x, rows = (
            part / np.linalg.norm(part, axis=1)[:, None] for part in (x, memory.sums_.roots[label])
        )
        assert np.abs(rows @ x.T).max() < 0.999


def test_a_memory_that_is_taught_more_is_not_the_same_as_its_copy() -> None:
    memory = taught(samples())
    before = {name: array.copy() for name, array in memory.arrays().items()}
    twin = copy.deepcopy(memory)
    twin.learn(samples(seed=4), np.random.default_rng(0))
    twin.forget(1)
    for name, array in memory.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_square_roots_are_taken_of_features_that_are_not_negative() -> None:
    task = samples()
    positive = Task(task.features**2, task.labels)
    memory = MomentMemory()
    memory.learn(positive, np.random.default_rng(0))
    assert memory.sums_.rooted
    holds(memory, Task(np.abs(task.features), task.labels))
    assert (memory.sample(0, 50, np.random.default_rng(0)) >= 0).all()
    assert not taught(task, root=None).sums_.rooted


# --------------------------------------------------------------------------- merging


@budgets()
@settings(max_examples=15)
@given(data=st.data())
def test_merged_memories_are_one_that_was_taught_all(budget: Any, data: st.DataObject) -> None:
    task = samples()
    parts = data.draw(partitions(len(task.labels), most=4))
    first, *others = (taught(part(task, rows), budget=budget) for rows in parts)
    for other in others:
        kept = {label: label for label in other.classes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first.merge(other, kept)
    holds(first, task)
    if budget is WHOLE:
        same_answers(first, taught(task), samples(seed=1).features)
    else:
        cut_below(first, task)


@pytest.mark.parametrize("budgets", [(WHOLE, CUT), (CUT, WHOLE), (CUT, FEW), (WHOLE, FEW)])
def test_a_whole_memory_and_one_that_was_cut_are_merged(budgets: tuple[Any, Any]) -> None:
    task = samples((40, 20, 20, 9))
    half = np.arange(len(task.labels)) % 2 == 0
    one, other = (
        taught(part(task, rows), budget=budget)
        for rows, budget in zip((half, ~half), budgets, strict=True)
    )
    before = {name: array.copy() for name, array in other.arrays().items()}
    one.merge(other, {label: label for label in other.classes})
    holds(one, task)
    cut_below(one, task)
    for name, array in other.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_merged_class_may_have_another_number() -> None:
    task = samples((8, 8, 8))
    one, other = taught(part(task, task.labels < 2)), taught(part(task, task.labels > 0))
    one.merge(other, {1: 7, 2: 1})  # what the other calls 2 is known here as 1
    labels = np.select([task.labels == 2], [1], task.labels)
    twice = Task(
        np.concatenate([task.features, task.of(1)]), np.concatenate([labels, np.full(8, 7)])
    )
    holds(one, twice)


@budgets()
def test_an_empty_memory_takes_over_what_is_merged(budget: Any) -> None:
    task = samples()
    memory, other = MomentMemory(budget, root=False), taught(task, budget=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory.merge(other, {label: label for label in other.classes})
    holds(memory, task)


def test_evidence_is_added_up() -> None:
    one, other = taught(samples()), taught(samples(seed=1))
    expected = {y: one.evidence_[y].sums + other.evidence_[y].sums for y in one.evidence_}
    assert expected
    one.merge(other, {label: label for label in other.classes})
    for label, sums in expected.items():
        np.testing.assert_array_equal(one.evidence_[label].sums, sums)


def unchanged(memory: MomentMemory, act: Any, message: str) -> None:
    """An error that says what is wrong, after which nothing has changed."""
    before = memory.state()
    with pytest.raises(InputError, match=message):
        act()
    after = memory.state()
    for name, array in before.pop("arrays").items():
        np.testing.assert_array_equal(array, after["arrays"][name])
    assert before == {name: after[name] for name in before}


def test_what_cannot_be_merged_changes_nothing() -> None:
    memory = taught(samples())
    wide, rooted = taught(samples(dim=DIM + 1)), taught(samples(), root=True)
    kept = {label: label for label in memory.classes}
    unchanged(memory, lambda: memory.merge(wide, kept), "one memory has 10 features, the other 11")
    unchanged(memory, lambda: memory.merge(rooted, kept), "teach one of them again with root=True")


@budgets()
def test_two_classes_become_one(budget: Any) -> None:
    task = samples()
    memory = taught(task, budget=budget)
    memory.join(1, 3)
    joined = Task(task.features, np.where(task.labels == 3, 1, task.labels))
    holds(memory, joined)
    assert memory.evidence_.keys() <= set(joined.classes)


# --------------------------------------------------------------------------- taking out


@budgets()
@settings(max_examples=15)
@given(data=st.data())
def test_what_was_taught_can_be_taken_out_again(budget: Any, data: st.DataObject) -> None:
    task = samples((30, 14, 6))
    label = data.draw(st.sampled_from([0, 1, 2]))
    own = np.flatnonzero(task.labels == label)
    gone = data.draw(st.lists(st.sampled_from(own.tolist()), min_size=1, max_size=len(own) - 1,
                              unique=True))  # fmt: skip
    memory = taught(task, budget=budget)
    memory.unlearn(part(task, gone), len(own))
    left = np.setdiff1d(np.arange(len(task.labels)), gone)
    holds(memory, part(task, left))
    if budget is WHOLE:
        same_answers(memory, taught(part(task, left)), samples(seed=1).features)


@budgets()
def test_unlearning_restores_what_was_there_before(budget: Any) -> None:
    before, more = samples(), samples(seed=3)
    memory = taught(before, more, budget=budget)
    for label in before.classes:
        memory.unlearn(Task(more.of(label), more.labels[more.labels == label]),
                       memory.counts_[label])  # fmt: skip
    holds(memory, before)


def test_what_was_never_taught_cannot_be_taken_out() -> None:
    task = samples()
    memory = taught(task)
    far = Task(task.of(0)[:2] + 50, np.zeros(2, int))
    unchanged(
        memory, lambda: memory.unlearn(far, 30), r"not all of these were taught \(2 samples\)"
    )
    every = Task(task.of(2), np.full(7, 2))
    unchanged(memory, lambda: memory.unlearn(every, 7), "remove all of them, forget the class")
    twice = Task(task.of(2)[[0, 0, 0]], np.full(3, 2))
    unchanged(
        memory, lambda: memory.unlearn(twice, 7), r"not all of these were taught \(3 samples\)"
    )


def test_a_whole_memory_forgets_a_class_without_a_trace() -> None:
    task = samples()
    memory = taught(task)
    assert memory.forget(1) == []
    never = part(task, task.labels != 1)
    holds(memory, never)
    same_answers(memory, taught(never), samples(seed=1).features)


@pytest.mark.parametrize("budget", [CUT, FEW])
def test_a_class_that_is_forgotten_by_its_samples_leaves_no_scatter(budget: Any) -> None:
    task = samples()
    memory = taught(task, budget=budget)
    assert memory.forget_with(Task(task.of(1), np.ones(12, int))) == []
    holds(memory, part(task, task.labels != 1))


@pytest.mark.parametrize("budget", [CUT, FEW])
def test_a_class_that_is_forgotten_takes_its_share_of_the_scatter(budget: Any) -> None:
    """The trace is that of the others exactly, and nothing becomes negative."""
    task = samples()
    memory = taught(task, budget=budget)
    (remains,) = memory.forget(1)
    assert remains.startswith("the covariance that all classes share lost the class's rows")
    left = part(task, task.labels != 1)
    squares = sum(float(np.trace(scatter_of(left.of(label)))) for label in left.classes)
    found = float(np.trace(memory.sums_.scatter)) + memory.sums_.other_squares
    assert found == pytest.approx(squares, rel=1e-4)
    rest = memory.sums_.scatter - sum(own_scatter(memory, label) for label in memory.classes)
    assert np.linalg.eigvalsh(rest)[0] > -1e-5 * squares


def test_samples_of_another_class_do_not_make_it_forget() -> None:
    task = samples((9, 9, 9))
    memory = taught(task, budget=CUT)
    other = Task(task.of(2), np.ones(9, int))
    unchanged(memory, lambda: memory.forget_with(other), "not the samples of the class")


@pytest.mark.parametrize("count", [4, 30])
def test_the_longest_combinations_of_few_and_of_many_rows_are_singular_vectors(count: int) -> None:
    rows = np.random.default_rng(count).normal(size=(count, 9)).astype(np.float32)
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    found = leading(rows, 3)
    np.testing.assert_allclose(np.abs((found * left[:, :3]).sum(axis=0)), 1, atol=1e-4)
    expected = sizes[:3, None] * right[:3]
    np.testing.assert_allclose(np.abs(found.T @ rows), np.abs(expected), atol=1e-4)


def test_work_does_not_grow_with_the_cube_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """No decomposition is of a matrix larger than the coordinates."""
    sizes, decompose = [], np.linalg.eigh

    def noted(matrix: Array) -> Any:
        sizes.append(matrix.shape[-1])
        return decompose(matrix)

    monkeypatch.setattr(np.linalg, "eigh", noted)
    memory = taught(samples((900, 700, 300), dim=20), samples((500, 9, 400), dim=20), budget="1kB")
    assert not memory.sums_.is_whole
    assert max(sizes) <= 128  # rows whose axes are found at once, or coordinates


# --------------------------------------------------------------------------- budget


@settings(max_examples=25)
@given(
    budget=st.one_of(st.integers(60, 2000), st.integers(400, 6000).map(lambda n: f"{n}B")),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    seed=st.integers(0, 9),
)
def test_the_budget_is_kept_at_all_times(budget: Any, sizes: list[int], seed: int) -> None:
    """But for means, which are kept at any price, and one coordinate with a covariance."""
    task = samples(tuple(sizes), seed=seed)
    room, memory = Budget.of(budget), MomentMemory(budget, root=False)
    order = np.random.default_rng(seed).permutation(len(task.labels))
    for rows in np.array_split(order, min(4, len(order))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            memory.learn(part(task, rows), np.random.default_rng(0))
        least = room.summed(DIM, len(memory.classes), 1, 0)
        spent = sum(c.bytes if room.in_bytes else c.stored for c in memory.components())
        assert spent <= max(room.limit, least)
        arrays = memory.arrays().values()
        assert spent == sum(a.nbytes if room.in_bytes else a.size for a in arrays)


def test_means_that_exceed_the_budget_are_kept_with_a_warning() -> None:
    memory = MomentMemory("100B", root=False)
    with pytest.warns(UserWarning, match="without any row of their own: more than the budget of"):
        memory.learn(samples(), np.random.default_rng(0))
    task = samples()
    close(memory.sums_.means[0], task.of(0).mean(axis=0))


def test_directions_limit_the_rows_of_each_class() -> None:
    memory = taught(samples(), directions=2)
    assert max(map(len, memory.sums_.roots.values())) == 2
    holds(memory, samples())
    assert not any(map(len, taught(samples(), directions=0).sums_.roots.values()))


def test_the_cost_is_known_beforehand() -> None:
    for sizes in ((5, 5), (100, 100, 100), (3,) * 30):
        for budget in (WHOLE, CUT, FEW, "20kB"):
            memory = taught(samples(sizes), budget=budget)
            told = memory.cost(DIM, len(sizes), samples=sum(sizes))
            assert sum(c.bytes for c in memory.components()) <= sum(c.bytes for c in told)


def saved_bytes(task: Task, path: Path, *parts: str) -> int:
    """Of a classifier's file."""
    FrugalClassifier(*parts).fit(task.features, task.labels).save(path)
    return path.stat().st_size


@pytest.mark.parametrize("dim", [512, 768, 1280])
@pytest.mark.parametrize("count", [1, 2, 10, 100, 1000, 5000])
def test_a_file_is_no_larger_than_the_samples_nor_than_the_budget(
    dim: int, count: int, tmp_path: Path
) -> None:
    """Files as they are, store-all with the smallest head there is; and what memories keep."""
    classes = min(3, count)
    x = np.random.default_rng(count).standard_normal((count, dim), np.float32)
    task = Task(x, np.arange(count) % classes)
    size = saved_bytes(task, tmp_path / "it.frugal")
    memory: Any = FrugalClassifier.load(tmp_path / "it.frugal").memory_
    kept = sum(array.nbytes for array in memory.arrays().values())
    assert kept <= min(x.nbytes, usual_bytes(dim, classes))
    header = 4_000  # labels, quantiles of novelty, history, and where arrays are
    assert size - kept <= header
    if count <= 1000:  # from there on, the budget is the smaller bound by far
        assert size <= saved_bytes(task, tmp_path / "other.frugal", "store-all", "nearest-mean")
    else:
        assert usual_bytes(dim, classes) + header < x.nbytes


# --------------------------------------------------------------------------- files


@budgets()
def test_a_file_rounds_once(budget: Any) -> None:
    """Loaded and saved again, arrays are the same; and everything is near to what it was."""
    memory = taught(samples((40, 20, 6, 1)), budget=budget)
    loaded = MomentMemory.from_state(memory.state())
    again = MomentMemory.from_state(loaded.state())
    for name, array in memory.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[name], array)
        np.testing.assert_array_equal(again.arrays()[name], array)
    x = samples(seed=1).features
    np.testing.assert_array_equal(loaded.log_density(x), again.log_density(x))
    assert loaded.counts_ == memory.counts_
    for label in memory.classes:
        close(loaded.sums_.means[label], memory.sums_.means[label], 1e-4)
        close(own_scatter(loaded, label), own_scatter(memory, label), 0.02)
    close(loaded.sums_.scatter, memory.sums_.scatter, 1e-4)
    close(loaded.log_density(x), memory.log_density(x), 0.02)
    assert loaded.tempering == pytest.approx(memory.tempering)


@settings(max_examples=50)
@example(seed=571057486, size=2, rows=1, dim=1, exponent=25)  # rounded down to another scale
@given(
    seed=st.integers(0, 2**31),
    size=st.sampled_from([1, 2]),
    rows=st.integers(0, 6),
    dim=st.integers(1, 9),
    exponent=st.integers(-30, 30),
)
def test_rounding_what_was_rounded_changes_nothing(
    seed: int, size: int, rows: int, dim: int, exponent: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (10.0**exponent * rng.normal(size=(rows, dim))).astype(np.float32)
    whole, scales = round_rows(x, size)
    restored = restore_rows(whole, scales)
    assert np.abs(restored - x).max(initial=0) <= 0.51 * scales.max(initial=0)
    again, other = round_rows(restored, size)
    np.testing.assert_array_equal(again, whole)
    np.testing.assert_array_equal(other, scales)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**31), dim=st.integers(1, 9), rows=st.integers(0, 12))
def test_a_symmetric_matrix_rounds_once(seed: int, dim: int, rows: int) -> None:
    x = np.random.default_rng(seed).normal(size=(rows, dim))
    matrix = restore_symmetric(*round_symmetric(x.T @ x))
    close(matrix, x.T @ x, 1e-4)
    again = restore_symmetric(*round_symmetric(matrix))
    np.testing.assert_array_equal(again, matrix)


def test_a_memory_that_rounds_must_say_so_and_round_once() -> None:
    class Silent(MomentMemory):
        rounds = False

    class Worse(MomentMemory):
        @classmethod
        def from_state(cls, state: dict[str, Any]) -> MomentMemory:
            memory = super().from_state(state)
            memory.sums_.means = {label: 0.9 * mean for label, mean in memory.sums_.means.items()}
            return memory

    survives_a_file(MomentMemory)
    with pytest.raises(ContractError, match="saved and loaded, it gives other samples"):
        survives_a_file(Silent)
    with pytest.raises(ContractError, match="saved and loaded, it gives other samples"):
        survives_a_file(Worse)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], ["a", "b"]),  # means are symmetric
        ([[3.0]], ["a"]),
        ([[-1.0], [2.0]], ["a", "a"]),
        ([[0.0, 0.0]] * 4, ["a", "a", "b", "b"]),
        ([[0.0, 1.0], [0.5, 1.0], [1.0, 0.0], [1.0, 0.5]], ["a", "a", "b", "b"]),
    ],
)
def test_the_smallest_classifiers_have_files(x: Any, y: Any, tmp_path: Path) -> None:
    clf = FrugalClassifier().fit(x, y)
    clf.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    np.testing.assert_array_equal(loaded.predict(x), clf.predict(x))


def test_an_empty_memory_has_a_file_too() -> None:
    memory = MomentMemory.from_state(MomentMemory("3MB", directions=5, root=True).state())
    assert (memory.budget, memory.directions, memory.root) == ("3MB", 5, True)
    memory.learn(samples(), np.random.default_rng(0))
    assert memory.classes == [0, 1, 2, 3, 4]


@budgets()
def test_a_loaded_memory_goes_on_learning(budget: Any) -> None:
    task = samples()
    half = np.arange(len(task.labels)) % 2 == 0
    memory = MomentMemory.from_state(taught(part(task, half), budget=budget).state())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory.learn(part(task, ~half), np.random.default_rng(0))
    assert memory.counts_ == {label: len(task.of(label)) for label in task.classes}
    for label in task.classes:
        close(memory.sums_.means[label], task.of(label).mean(axis=0), 1e-3)


#: What may be wrong with an array, whatever it holds.
WRONG: dict[str, Any] = {
    "one row less": lambda a: a[:-1],
    "one row more": lambda a: np.concatenate([a, a[:1]]),
    "one more dimension": lambda a: a[:, None],
    "another type": lambda a: a.astype(np.float64),
    "no column": lambda a: a[..., :0],
}
#: What may be wrong with the values of arrays that are no whole numbers.
ODD = {"nan": np.nan, "infinite": np.inf, "negative": -1.0}


@pytest.mark.parametrize("budget", [WHOLE, FEW])
@pytest.mark.parametrize("wrong", WRONG)
def test_arrays_that_do_not_fit_together_are_refused(wrong: str, budget: Any) -> None:
    state = taught(samples((9, 8, 7)), budget=budget).state()
    assert len(state["arrays"]) == 10  # two say margins, or the covariance if there is no room
    for name, array in state["arrays"].items():
        arrays = state["arrays"] | {name: WRONG[wrong](array)}
        with pytest.raises(MemoryFileError, match="MomentMemory"):
            MomentMemory.from_state(state | {"arrays": arrays})
        without = {kept: a for kept, a in state["arrays"].items() if kept != name}
        with pytest.raises(MemoryFileError, match="MomentMemory"):
            MomentMemory.from_state(state | {"arrays": without})


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["mean_scales", "squares", "held_out", "root_scales", "variances"])
def test_odd_values_are_refused(name: str, odd: str) -> None:
    state = taught(samples((40, 30, 7)), budget="600B").state()
    array = state["arrays"][name].copy()
    array.flat[0] = ODD[odd]
    with pytest.raises(MemoryFileError, match="MomentMemory"):
        MomentMemory.from_state(state | {"arrays": state["arrays"] | {name: array}})


def test_scales_that_make_numbers_infinite_are_refused() -> None:
    state = taught(samples((9, 8))).state()
    for name in ("mean_scales", "root_scales"):
        arrays = state["arrays"] | {name: np.full_like(state["arrays"][name], 3e38)}
        with pytest.raises(MemoryFileError, match=f"{name} of a MomentMemory are negative, or not"):
            MomentMemory.from_state(state | {"arrays": arrays})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0),
        ("rank", -1),
        ("rank", DIM + 1),
        ("rank", True),
        ("rank", None),
        ("rooted", 1),
        ("other_squares", -1.0),
        ("other_squares", float("nan")),
        ("other_squares", 1),
        ("labels", [0, 1]),
        ("labels", [0, 1, 1]),
        ("labels", "012"),
        ("labels", [0, 1, [2]]),
        ("labels", [0, 1, "2"]),
        ("labels", []),
        ("arrays", {}),
        ("arrays", []),
    ],
)
def test_settings_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    for budget in (WHOLE, FEW):
        state = taught(samples((9, 8, 7)), budget=budget).state()
        with pytest.raises(MemoryFileError):
            MomentMemory.from_state(state | {name: value})
        del state[name]
        with pytest.raises(MemoryFileError):
            MomentMemory.from_state(state)


# --------------------------------------------------------------------------- evidence


def test_evidence_tells_how_samples_were_classified() -> None:
    task = samples((40, 40, 40), apart=0.7)
    found = sum(taught(task).evidence_.values(), Evidence())
    assert found.held_out == found.margins.sum() == 3 * 40
    right = []
    for fold in range(10):
        out = np.arange(len(task.labels)) // 3 % 10 == fold
        without = taught(part(task, ~out))
        answers = without.log_density(task.features[out]).argmax(axis=1)
        right.append((np.array(without.classes)[answers] == task.labels[out]).sum())
    assert abs(found.right - sum(right)) <= 6
    many = taught(samples((200,) * 30, apart=0.7))
    assert all(own.held_out == 25 for own in many.evidence_.values())


def test_logits_are_scores_over_length_and_root_of_the_lead() -> None:
    task = samples((20, 15, 10), apart=1.0)
    memory = taught(task)
    scores, rule = memory.log_density(task.features), memory._posterior(SHRINKAGE)
    white = rule.whiten(task.features.astype(np.float64), np.empty((len(task.features), 0)))
    for row, found in enumerate(memory.logits(task.features)):
        lead = scores[row].max() - scores[row].mean()
        expected = memory.tempering * scores[row] / np.linalg.norm(white[row]) / lead**0.5
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        given = memory.logits(task.features[[row]], tempering=3.0)[0]
        np.testing.assert_allclose(given, 3 * scores[row] / np.linalg.norm(white[row]), rtol=1e-4)


@pytest.mark.parametrize("budget", [WHOLE, "3kB"])
def test_answers_are_as_sure_as_they_are_right(budget: Any) -> None:
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        centres = 1.2 * rng.normal(size=(20, DIM))
        y, asked = np.arange(800) % 20, np.arange(2000) % 20
        x, test = (centres[labels] + rng.normal(size=(len(labels), DIM)) for labels in (y, asked))
        clf = FrugalClassifier(MomentMemory(budget, root=False)).fit(x, y)
        right = (clf.predict(test) == asked).mean()
        assert 0.7 < right < 0.95
        gaps.append(clf.predict_proba(test).max(axis=1).mean() - right)
    assert np.abs(gaps).max() < 0.05
    assert abs(np.mean(gaps)) < 0.02


# --------------------------------------------------------------------------- samples


@budgets()
def test_samples_have_mean_and_variance_of_their_class(budget: Any) -> None:
    task = samples((200, 200, 200))
    memory = taught(task, budget=budget)
    for label in task.classes:
        drawn = memory.sample(label, 4000, np.random.default_rng(0)).astype(np.float64)
        variance = np.trace(scatter_of(task.of(label))) / 199
        found = np.trace(scatter_of(drawn)) / 3999
        assert found == pytest.approx(variance, rel=0.15)
        apart = np.linalg.norm(drawn.mean(axis=0) - task.of(label).mean(axis=0))
        assert apart < 0.1 * variance**0.5


@budgets()
def test_variances_of_features_and_of_classes_are_those_of_plain_sums(budget: Any) -> None:
    """Relative to the others, a class of one or two samples is as any: they say nothing of it."""
    task = samples((30, 12, 3, 2, 1))
    own = [scatter_of(task.of(label)).diagonal() for label in task.classes]
    freedom = 48 - 5
    plain = sum(own) / freedom
    expected = (freedom * plain + 30 * plain.mean()) / (freedom + 30)
    ratios = [own[c].sum() / (n - 1) / plain.sum() for c, n in enumerate((30, 12, 3))]
    variances, found = taught(task, budget=budget).mapped_variances()
    np.testing.assert_allclose(found, [*ratios, 1, 1], rtol=1e-4)
    assert variances.sum() == pytest.approx(plain.sum(), rel=1e-5)
    if budget != FEW:
        np.testing.assert_allclose(variances, expected, rtol=1e-4)


def test_it_is_the_default() -> None:
    assert make_memory("moments").__class__ is MomentMemory
    clf = FrugalClassifier().fit(samples().features, samples().labels)
    assert clf.memory_report().memory == "moments"
    assert type(clf.head_).__name__ == "BayesHead"


def test_expected_accuracy_is_that_of_new_samples_also_with_classes_that_came_later() -> None:
    rng = np.random.default_rng(0)
    means = 0.55 * rng.standard_normal((20, 16))
    y = np.arange(20 * 80) % 20
    x = (means[y] + rng.standard_normal((len(y), 16))).astype(np.float32)
    taught = np.arange(len(y)) < 20 * 30
    classifier = FrugalClassifier()
    for start in range(0, 20, 4):
        rows = taught & (y >= start) & (y < start + 4)
        classifier.partial_fit(x[rows], y[rows])
    shares = classifier.model_.expected_accuracy()
    assert list(shares) == list(range(20))
    right = classifier.predict(x[~taught]) == y[~taught]
    real = np.array([right[y[~taught] == label].mean() for label in range(20)])
    evidence = classifier.memory_.evidence_.values()
    then = np.mean([found.right / found.held_out for found in evidence])
    expected = np.array(list(shares.values()))
    assert then - real.mean() > 0.08  # classes that came later were not known then
    assert abs(expected.mean() - real.mean()) < 0.06
    assert np.corrcoef(expected, real)[0, 1] > 0.4


def test_what_margins_have_lost_to_later_classes_is_kept_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((80, 8)), np.arange(80) % 8
    classifier = FrugalClassifier().partial_fit(x[y < 4], y[y < 4])
    classifier.partial_fit(x[y >= 4], y[y >= 4])
    evidence = classifier.memory_.evidence_
    assert all(evidence[label].corrections.lost > 0 for label in range(4))
    assert not any(evidence[label].corrections.lost for label in range(4, 8))
    classifier.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    assert loaded.model_.expected_accuracy() == pytest.approx(classifier.model_.expected_accuracy())
    assert FrugalClassifier("gaussian-diagonal").fit(x, y).model_.expected_accuracy() == {}


def test_teaching_takes_a_few_times_the_bytes_of_the_samples() -> None:
    rng = np.random.default_rng(0)
    task = Task(rng.standard_normal((20_000, 128), np.float32), np.arange(20_000) % 50)
    memory = MomentMemory()
    tracemalloc.start()
    try:
        memory.learn(task, rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 7 * task.features.nbytes  # in float64 they take twice their bytes
