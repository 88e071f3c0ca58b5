"""The classifier with scikit-learn and without: the same answers, and errors that say as much."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_memory
from frugalvae.errors import InputError
from frugalvae.estimator import NotFittedError

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
