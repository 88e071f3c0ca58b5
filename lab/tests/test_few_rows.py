"""Heads on random features: few samples are solved in their number, with one result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head
from frugalvae_lab.heads.ridge import solve_dual, solve_ridge

WIDTH = 200


@pytest.mark.parametrize(
    "name", ["ranpac", "acil", "gacl", "fly-cl", "klda", "klda-e", "randumb", "anacp"]
)
@pytest.mark.parametrize("samples", [5, WIDTH, WIDTH + 1])
def test_few_samples_give_the_same_as_the_sums(name: str, samples: int, tmp_path: Path) -> None:
    """A file has the sums alone, so what is loaded is solved from them."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(samples, 12)), np.arange(samples) % 5
    settings = {"penalties": (1.0,)} if name in ("ranpac", "fly-cl") else {}
    clf = FrugalClassifier("none", make_head(name, width=WIDTH, **settings), random_state=0)
    for task in ([0, 1], [2, 3, 4]):
        clf.partial_fit(x[np.isin(y, task)], y[np.isin(y, task)])
    head = clf.head_
    assert head._late.known == (samples <= WIDTH)
    formed = [len(vars(head).get(name, [])) for name in ("gram_", "scatters_", "grams_")]
    assert any(formed) == (samples > WIDTH)  # only when it is needed
    asked = rng.normal(size=(30, 12))
    before = clf.predict_proba(asked)
    clf.save(tmp_path / "file.frugal")
    loaded = FrugalClassifier.load(tmp_path / "file.frugal")
    assert not loaded.head_._late.known
    np.testing.assert_allclose(before, loaded.predict_proba(asked), rtol=0, atol=2e-3)


def test_both_forms_solve_the_same_equations() -> None:
    rng = np.random.default_rng(0)
    hidden, targets = rng.normal(size=(7, 20)), rng.normal(size=(7, 3))
    for penalty in (1e-6, 1.0, 1e4):
        primal = solve_ridge(hidden.T @ hidden, hidden.T @ targets, penalty)
        dual = solve_dual(hidden, targets, penalty)
        np.testing.assert_allclose(primal[0], dual[0], rtol=1e-6, atol=1e-9)
        assert primal[1] == dual[1] == penalty
