"""The paper's claims on real data: digits always, feature files where there are any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conftest import real_features

from frugalvae import FrugalClassifier, make_memory
from frugalvae.images.feature_file import Features
from frugalvae_lab.bench.run import Record, run_stream
from frugalvae_lab.images.dataset import load_digits

NETWORK = {"hidden": 128, "latent": 64, "max_steps": 400, "classwise": False}


def stream(features: Features, tasks: int, **settings: Any) -> Record:
    classifier = FrugalClassifier(make_memory("vae-fo", **{**NETWORK, **settings}))
    return run_stream(classifier, features, tasks, seed=0)


def final(features: Features, tasks: int, **settings: Any) -> float:
    return stream(features, tasks, **settings).metrics["final_average_accuracy"]


def part(features: Features, classes: int) -> Features:
    """The first classes alone."""
    kept = features.classes[:classes]
    train, test = np.isin(features.y_train, kept), np.isin(features.y_test, kept)
    return Features(
        features.name,
        features.x_train[train],
        features.y_train[train],
        features.x_test[test],
        features.y_test[test],
    )


def test_on_digits_the_null_space_remembers_what_others_forget_or_never_learn() -> None:
    digits = load_digits()
    record = stream(digits, 5)
    null_space = record.metrics["final_average_accuracy"]
    assert null_space > 0.8
    assert record.metrics["forgetting"] < 0.15
    assert null_space > final(digits, 5, decoder="free") + 0.1
    assert null_space > final(digits, 5, decoder="frozen") + 0.2


@pytest.mark.parametrize("name", ["ucf101-clip_vit_b32", "aircraft100-clip_vit_b32"])
def test_on_clip_features_the_null_space_beats_free_and_frozen(name: str) -> None:
    features = part(real_features(name), 20)
    null_space = final(features, 5)
    assert null_space > final(features, 5, decoder="free") + 0.1
    assert null_space > final(features, 5, decoder="frozen") + 0.1


def test_text_features_alone_classify_cars() -> None:
    """Zero-shot: a head that starts from text and is never fitted."""
    from frugalvae import make_head

    features = real_features("cars196-clip_vit_b32")
    assert features.text is not None
    classifier = FrugalClassifier("store-all", make_head("cosine", start="text", epochs=0))
    classifier.partial_fit(features.x_train, features.y_train, text=features.text)
    accuracy = np.mean(classifier.predict(features.x_test) == features.y_test)
    assert accuracy == pytest.approx(0.590, abs=0.005)
