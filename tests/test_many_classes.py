"""Many classes: what a lesson does not look at, so that it takes as long as with few."""

from __future__ import annotations

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.maths.arrays import Array
from frugalvae.model import model
from frugalvae.moments import sums
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.checks import check_learned
from frugalvae.parts.protocols import Task

DIM = 16


def lesson(start: int, classes: int, each: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, start])
    y = np.arange(start, start + classes).repeat(each)
    x = 3 * rng.normal(size=(classes, DIM)).repeat(each, axis=0) + rng.normal(size=(len(y), DIM))
    return x.astype(np.float32), y


def filled(budget: str | None = "6kB") -> MomentMemory:
    memory = make_memory("moments", budget=budget)
    memory.learn(Task(*lesson(0, 40, 12)), np.random.default_rng(0))
    return memory


@pytest.mark.parametrize("budget", ["6kB", None])
def test_some_classes_have_the_covariance_of_all(budget: str | None) -> None:
    memory = filled(budget)
    assert memory.sums_.is_whole == (budget is None)
    x = lesson(0, 40, 12)[0][::7]
    everything = memory.restricted_to(set(memory.classes))
    np.testing.assert_allclose(everything.logits(x), memory.logits(x), rtol=1e-4, atol=1e-4)
    some = memory.restricted_to({3, 5, 8, 13, 21})
    assert some.classes == [3, 5, 8, 13, 21]
    assert memory.classes == list(range(40))
    if budget:  # the scatter is smaller by as much as the degrees of freedom
        np.testing.assert_allclose(some.sums_.scatter / (5 * 11), memory.sums_.scatter / (40 * 11))


def test_a_lesson_beside_many_is_what_it_is_beside_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means, counts and scatter exactly; quantiles of familiarity nearly."""

    def taught() -> FrugalClassifier:
        memory = make_memory("moments", budget="20kB")
        return (
            FrugalClassifier(memory)
            .partial_fit(*lesson(0, 150, 6))
            .partial_fit(*lesson(150, 5, 30))
        )

    exact = taught()
    monkeypatch.setattr(model, "CLASSES_COMPARED", 60)
    monkeypatch.setattr(sums, "CLASSES_COMPARED", 60)
    quick = taught()
    for name in ("scatter", "counts", "squares"):
        ours, theirs = (getattr(c.memory_.sums_, name) for c in (quick, exact))
        np.testing.assert_equal(ours, theirs)
    x = lesson(0, 155, 4, seed=1)[0]
    assert np.mean(quick.predict(x) == exact.predict(x)) > 0.99
    one, other = (np.array(clf.taught_novelty_.quantiles) for clf in (quick, exact))
    assert np.abs(one - other)[5:-5].max() < 0.15 * np.ptp(other)
    assert not np.array_equal(one, other)  # or nothing was left out


def test_what_a_lesson_changed_is_checked() -> None:
    memory = filled()
    changed = memory.changed_arrays()
    assert {"mean 0", "rows 39", "squares 7", "shared covariance"} <= changed.keys()
    check_learned(memory)
    whole = dict(memory.sums_.means)
    memory.sums_.means = whole | {7: np.full(DIM, np.inf, np.float32)}
    with pytest.raises(InputError, match=r"NaN or infinite \(MomentMemory, mean 7\)"):
        check_learned(memory)
    memory.sums_.means = whole
    memory.forget(3)
    assert memory.changed_arrays().keys() == memory.arrays().keys()  # anything may have changed
