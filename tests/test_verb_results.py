"""Verbs without a command line: a model and samples go in, one result comes out, which is JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from frugalvae.model.model import Model
from frugalvae.samples import Rows, Samples
from frugalvae.verbs.check import check
from frugalvae.verbs.evaluate import evaluate
from frugalvae.verbs.predict import predict
from frugalvae.verbs.suggest import suggest
from tests.test_check import blobs

NAMES = np.array(["ant", "bee", "cow", "dog", "eel"])


def given(x: np.ndarray, y: Any = ()) -> Samples:
    names = [f"x[{row}]" for row in range(len(x))]
    rows = Rows(x.astype(np.float32), np.arange(len(x)))
    return Samples("x", names, None, rows, labels=np.array(y))


@pytest.fixture(scope="module")
def model() -> Model:
    x, y = blobs()
    return Model().learn(x, NAMES[y])


def test_each_verb_gives_one_result_that_is_its_json(model: Model) -> None:
    x, y = blobs()
    x, labels = x + 0.1, NAMES[y]
    labels[3] = "eel"
    found = check(model, given(x, labels))
    assert [f["image"] for f in found.to_json()["findings"]] == ["x[3]"]
    assert found.line(found.findings[0]).startswith("x[3]: it looks like ant")
    scores = evaluate(model, given(x, labels))
    assert scores.to_json()["wrong"][0]["sample"] == "x[3]"
    chosen = suggest(model, given(x), number=2)
    assert {s["image"] for s in chosen.to_json()["suggestions"]} <= set(given(x).names)
    answers = [answer for batch in predict(model, given(x), top=2) for answer in batch]
    assert [answer.label for answer in answers[:3]] == ["ant"] * 3
    for result in (found, scores, chosen, *answers):
        json.dumps(result.to_json(), allow_nan=False)
