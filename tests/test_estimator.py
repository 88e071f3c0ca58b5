"""The classifier with scikit-learn and without: the same answers, and errors that say as much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.estimator import NotFittedError
from tests.conftest import load_digits

TAUGHT = """
import numpy as np
from frugalvae import FrugalClassifier, make_memory
rng = np.random.default_rng(0)
x, y = rng.normal(size=(60, 6)), np.arange(60) % 3
x[np.arange(60), y] += 3
clf = FrugalClassifier().fit(x[:40], y[:40]).partial_fit(x[40:], y[40:])
print(clf.predict_proba(x).sum(axis=0).round(4).tolist(), clf.score(x, y))
"""


def printed(hidden: str) -> str:
    """What teaching prints in a process where some packages cannot be imported."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({hidden.split()!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", hide + TAUGHT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_scikit_learn_answers_are_the_same() -> None:
    assert printed("sklearn scipy") == printed("")


def test_settings_are_read_and_changed_by_name() -> None:
    clf = FrugalClassifier("gaussian-diagonal", random_state=3)
    assert clf.get_params()["random_state"] == 3
    assert clf.set_params(memory="moments").memory == "moments"
    with pytest.raises(ValueError, match="budget"):
        clf.set_params(budget="3MB")


def test_a_classifier_that_was_taught_nothing_says_so() -> None:
    with pytest.raises(NotFittedError, match=r"nothing was taught yet; call fit\(\)"):
        FrugalClassifier().predict([[1.0]])


def test_labels_that_are_no_classes_are_refused() -> None:
    with pytest.raises(InputError, match="a name or a whole number"):
        FrugalClassifier().fit(np.eye(3), [0.1, 0.7, 2.3])
    with pytest.raises(InputError, match="shape"):
        FrugalClassifier().fit(np.ones(3), [0, 1, 2])
    clf = FrugalClassifier().fit(np.eye(3), ["a", "b", "c"])
    with pytest.raises(InputError, match=r"\(n, 3\)"):
        clf.predict(np.ones((2, 4)))


def test_settings_of_parts_can_be_searched() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 6)), np.arange(60) % 3
    search = selection.GridSearchCV(
        FrugalClassifier(make_memory("moments")), {"memory__budget": ["1kB", "9kB"]}, cv=2
    )
    assert search.fit(x, y).best_params_["memory__budget"] in ("1kB", "9kB")
    assert repr(make_memory("moments", budget="1kB")) == "MomentMemory(budget='1kB')"
    with pytest.raises(TypeError, match="nonsense"):
        make_memory("moments").set_params(nonsense=1)


def test_labels_of_several_kinds_are_refused() -> None:
    with pytest.raises((InputError, ValueError), match="several kinds|mix"):
        FrugalClassifier().fit(np.eye(2), ["a", 1])


def test_columns_are_in_the_order_that_scikit_learn_takes_for_granted() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    data = load_digits()
    late, once = FrugalClassifier(), FrugalClassifier().fit(data.x_train, data.y_train)
    for label in (7, 3, 9, 0, 1, 8, 2, 5, 4, 6):
        own = data.y_train == label
        late.partial_fit(data.x_train[own], data.y_train[own])
    assert late.classes_.tolist() == list(range(10))
    assert late.model_.classes.tolist() == [7, 3, 9, 0, 1, 8, 2, 5, 4, 6]
    assert late.task_of_class_.tolist() == [3, 4, 6, 1, 8, 7, 9, 0, 5, 2]
    assert late.n_samples_of_class_.tolist() == np.bincount(data.y_train).tolist()
    for name in ("neg_log_loss", "roc_auc_ovr", "top_k_accuracy"):
        scorer = metrics.get_scorer(name)
        in_order, as_they_came = (scorer(clf, data.x_test, data.y_test) for clf in (once, late))
        assert abs(in_order - as_they_came) < 0.03, name
    assert np.array_equal(late.predict_log_proba(data.x_test[:9]).argmax(axis=1),
                          late.predict(data.x_test[:9]))  # fmt: skip
    assert {"classes_", "memory_"} <= set(dir(late))
    assert "classes_" not in dir(FrugalClassifier())


def test_settings_of_a_memory_that_has_only_a_name() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    x, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    x[:, 0] += 9 * y
    budgets = {"memory__budget": ["1kB", "1MB"]}
    search = selection.GridSearchCV(FrugalClassifier(), budgets, cv=2).fit(x, y)
    assert search.best_score_ == 1
    assert search.best_estimator_.memory.budget in ("1kB", "1MB")
    changed = FrugalClassifier("none").set_params(head="ridge", head__penalty=2.0)
    assert changed.get_params()["head__penalty"] == 2.0


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("value", [0.0, 0.3, -1e6])
def test_samples_that_are_all_the_same(classes: int, value: float, tmp_path: Path) -> None:
    x, y = np.full((6, 4), value), np.arange(6) % classes
    clf = FrugalClassifier().fit(x, y)
    np.testing.assert_allclose(clf.predict_proba(x), 1 / classes)
    assert np.isfinite(clf.familiarity(x)).all()
    clf.save(tmp_path / "it.frugal")
    again = FrugalClassifier.load(tmp_path / "it.frugal")
    np.testing.assert_allclose(again.predict_proba(x), 1 / classes)


def test_what_is_wrong_with_samples_is_said_in_a_line() -> None:
    pytest.importorskip("sklearn")
    x, y = np.random.default_rng(0).normal(size=(40, 300)), np.arange(40) % 2
    clf = FrugalClassifier().fit(x, y)
    asked = {
        "x[None]": lambda: clf.predict(x[0]),
        "beyond float32's 3.4e38": lambda: clf.predict(np.full((1, 300), 1e39)),
        "row 0, column 5: NaN": lambda: clf.predict(np.where(np.arange(300) == 5, np.nan, x)[:1]),
        "at most 1e+14 in size": lambda: clf.partial_fit(x * 1e20, y),
        "expected a classifier": lambda: clf.merge("other.frugal"),
        "y has no label for row 1": lambda: clf.partial_fit(x[:2], ["a", None]),
    }
    for told, ask in asked.items():
        with pytest.raises(InputError) as error:
            ask()
        assert told in str(error.value)
        assert len(str(error.value)) < 300
    assert clf.n_tasks_ == 1


def test_a_seed_may_be_drawn_once() -> None:
    x, y = np.eye(4), [0, 1, 0, 1]
    drawn = [
        FrugalClassifier("gaussian-diagonal", random_state=np.random.RandomState(3)) for _ in "ab"
    ]
    one, two = (classifier.fit(x, y) for classifier in drawn)
    np.testing.assert_array_equal(one.sample(0), two.sample(0))
    seed = one.partial_fit(x, y).model_.recipe.random_state
    assert seed == two.model_.recipe.random_state
    other = FrugalClassifier("gaussian-diagonal", random_state=None).fit(x, y)
    assert other.model_.recipe.random_state != seed
