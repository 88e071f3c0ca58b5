"""Models that were taught apart, or bit by bit, are the model that was taught everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.errors import InputError, UnknownClassError
from frugalvae.maths.arrays import Array
from frugalvae.model.confidence import TaughtNovelty
from frugalvae.moments.memory import MomentMemory
from tests.conftest import accuracy
from tests.outside import MeanMemory

NAMES = np.array(["ant", "bee", "cat", "dax", "emu"])

#: Memories and heads that keep sums: in any batches and parts they are the same.
SUMS: dict[str, tuple[Any, Any]] = {
    "moments": (("moments", {"root": False}), "bayes"),
    "moments, cut": (("moments", {"root": False, "directions": 2}), "bayes"),
    "moments, lda": (("moments", {"root": False}), "lda"),
    "gaussian-diagonal": ("gaussian-diagonal", "bayes"),
    "gaussian-shared": ("gaussian-shared", "lda"),
    "gaussian-full": ("gaussian-full", "lda"),
    "nearest mean": ("none", "nearest-mean"),
    "store-all": ("store-all", "nearest-mean"),
}


def made(part: Any, make: Any) -> Any:
    return part if isinstance(part, str) else make(part[0], **part[1])


def fresh(case: str, **how: Any) -> FrugalClassifier:
    memory, head = SUMS[case]
    return FrugalClassifier(made(memory, make_memory), made(head, make_head), **how)


def samples(each: int = 12, seed: int = 0, dim: int = 8) -> tuple[Array, Array]:
    """Classes of unequal sizes, which overlap a little."""
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(7).normal(size=(5, dim))
    y = np.arange(5).repeat([each, each, 2 * each, 4, 2])
    return (centres[y] + rng.normal(size=(len(y), dim))).astype(np.float32), NAMES[y]


def halves() -> tuple[Array, Array, Array]:
    """Samples, labels, and which half each is in: some classes are in one half only."""
    x, y = samples()
    first = np.arange(len(y)) % 2 == 0
    first[y == "ant"] = True
    first[y == "emu"] = False
    return x, y, first


def alike(one: FrugalClassifier, other: FrugalClassifier, tolerance: float = 1e-3) -> None:
    """They know the same classes by as many samples, and give the same probabilities."""
    assert sorted(one.model_.classes.tolist()) == sorted(other.model_.classes.tolist())
    order = [other.model_.classes.tolist().index(label) for label in one.model_.classes.tolist()]
    assert one.model_.n_samples_of_class.tolist() == other.model_.n_samples_of_class[order].tolist()
    x, _ = samples(seed=5)
    mine, theirs = one.model_.predict_proba(x), other.model_.predict_proba(x)[:, order]
    np.testing.assert_allclose(mine, theirs, atol=tolerance)


def densities(one: FrugalClassifier, other: FrugalClassifier) -> None:
    """Like ``alike`` for moments: how sure answers are depends on what was held out when."""
    x, _ = samples(seed=5)
    memories: list[Any] = [one.memory_, other.memory_]
    scores = [memory.log_density(x) for memory in memories]
    order = [np.argsort(clf.model_.classes[np.searchsorted(clf.model_.numbers, memory.classes)])
             for clf, memory in zip((one, other), memories, strict=True)]  # fmt: skip
    found, expected = (s[:, o] for s, o in zip(scores, order, strict=True))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
    assert one.model_.n_samples_of_class.sum() == other.model_.n_samples_of_class.sum()


def same(case: str, one: FrugalClassifier, other: FrugalClassifier) -> None:
    if case == "moments":
        densities(one, other)
    elif case == "moments, cut":  # rows are cut as they come; sums are not
        for name in ("counts", "squares"):
            kept = (getattr(c.memory_.sums_, name) for c in (one, other))  # type: ignore[attr-defined]
            mine, theirs = (dict(sorted(each.items())) for each in kept)
            assert sorted(mine.values()) == pytest.approx(sorted(theirs.values()), rel=1e-4)
        mine, theirs = (c.memory_.sums_.scatter for c in (one, other))  # type: ignore[attr-defined]
        np.testing.assert_allclose(mine, theirs, atol=1e-4 * np.abs(theirs).max())
        x, _ = samples(seed=5)
        assert accuracy(one.predict(x), other.predict(x)) > 0.95
    else:
        alike(one, other)


# --------------------------------------------------------------------------- merging


@pytest.mark.parametrize("case", SUMS)
def test_halves_that_are_merged_are_the_whole(case: str) -> None:
    x, y, first = halves()
    one, other = fresh(case).fit(x[first], y[first]), fresh(case).fit(x[~first], y[~first])
    before = other.model_.predict_proba(x)
    assert one.merge(other) is one
    same(case, one, fresh(case).fit(x, y))
    np.testing.assert_array_equal(other.model_.predict_proba(x), before)


def test_replay_of_merged_samples_teaches_a_head_that_needs_it() -> None:
    pytest.importorskip("torch")
    x, y, first = halves()
    one, other, whole = (
        FrugalClassifier("store-all", "cosine").fit(x[rows], y[rows])
        for rows in (first, ~first, first | ~first)
    )
    one.merge(other)
    assert one.model_.n_samples_of_class.sum() == len(y)
    stored: Any = one.memory_
    kept = {name: stored.features_[number] for name, number in one.model_.number_of.items()}
    for label in NAMES.tolist():
        np.testing.assert_array_equal(np.sort(kept[label], axis=0), np.sort(x[y == label], axis=0))
    assert accuracy(one.predict(x), whole.predict(x)) > 0.95


@pytest.mark.parametrize("case", [case for case in SUMS if case != "moments, cut"])
def test_the_order_of_merging_does_not_matter(case: str) -> None:
    x, y = samples()
    thirds = [np.arange(len(y)) % 3 == part for part in range(3)]
    parts = [(x[rows], y[rows]) for rows in thirds]
    a, b, c = (fresh(case).fit(*part) for part in parts)
    left = fresh(case).fit(*parts[0]).merge(b).merge(c)
    right = fresh(case).fit(*parts[2]).merge(fresh(case).fit(*parts[1]).merge(a))
    same(case, left, right)


@settings(max_examples=10)
@given(data=st.data())
def test_any_parts_in_any_order_are_the_whole(data: st.DataObject) -> None:
    x, y = samples()
    owner = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    parts = data.draw(st.permutations(np.unique(owner).tolist()))
    first, *others = (fresh("moments").fit(x[owner == n], y[owner == n]) for n in parts)
    for other in others:
        first.merge(other)
    densities(first, fresh("moments").fit(x, y))


def test_merged_classifiers_go_on_learning(tmp_path: Path) -> None:
    x, y, first = halves()
    for case in ("moments", "gaussian-shared"):
        one, other = fresh(case).fit(x[first], y[first]), fresh(case).fit(x[~first], y[~first])
        one.merge(other).partial_fit(x[:9] + 9, ["gnu"] * 9)
        one.save(tmp_path / "it.frugal")
        loaded = FrugalClassifier.load(tmp_path / "it.frugal")
        assert loaded.predict(x[:9] + 9).tolist() == ["gnu"] * 9
        assert loaded.model_.numbers.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("odd", [None, b"x", 1.5])
def test_what_is_no_label_is_no_new_name(odd: Any) -> None:
    mine, yours = (FrugalClassifier().fit(np.eye(2), [f"{n} 1", f"{n} 2"]) for n in "ab")
    before = mine.model_
    with pytest.raises(InputError, match="expected a name or a whole number"):
        mine.merge(yours, rename={"b 1": odd})
    assert mine.model_ is before


def test_classes_are_renamed_on_the_way() -> None:
    x, y, first = halves()
    one = fresh("moments").fit(x[first], y[first])
    new = {"ant": "ant", "bee": "wasp", "cat": "cat", "dax": "dax", "emu": "bee"}
    other = fresh("moments").fit(x[~first], y[~first])
    one.merge(other, rename={"bee": "wasp", "emu": "bee"})
    told = np.where(first, y, [new[label] for label in y.tolist()])
    densities(one, fresh("moments").fit(x, told))
    assert one.model_.classes.tolist() == ["ant", "bee", "cat", "dax", "wasp"]


def test_numbers_follow_what_is_forgotten() -> None:
    """Numbers of the two differ, and neither begins at 0 or is without gaps."""
    x, y, first = halves()
    one, other = fresh("moments").fit(x[first], y[first]), fresh("moments")
    for label in ("emu", "dax", "cat", "bee"):
        rows = ~first & (y == label)
        other.partial_fit(x[rows], y[rows])
    one.forget("ant")
    other.forget("cat")
    one.merge(other)
    kept = (first & (y != "ant")) | (~first & (y != "cat"))
    densities(one, fresh("moments").fit(x[kept], y[kept]))


def test_tasks_and_history_are_those_of_both() -> None:
    x, y, first = halves()
    one, other = fresh("moments").fit(x[first], y[first]), fresh("moments")
    other.partial_fit(x[y == "emu"], y[y == "emu"])
    other.partial_fit(x[y == "bee"], y[y == "bee"])
    before = one.n_tasks_
    one.merge(other)
    assert one.n_tasks_ == before + 1  # of its two tasks, one taught a class that is new here
    assert one.model_.task_of_class.tolist() == [0, 0, 0, 0, 1]
    events = one.history_
    assert [event["action"] for event in events] == ["learn", "learn", "learn", "merge"]
    assert events[0]["classes"] == {"ant": 12, "bee": 6, "cat": 12, "dax": 2}
    assert events[1]["classes"] == {"emu": 2}
    assert events[-1]["classes"] == {"emu": 2, "bee": 12}


def test_novelty_of_both_is_remembered() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.gamma(2, size=900), 1 + rng.gamma(2, size=300)
    merged = TaughtNovelty().with_samples(one).merge(TaughtNovelty().with_samples(other))
    assert merged.count == 1200
    expected = np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 101))
    np.testing.assert_allclose(merged.quantiles[1:-1], expected[1:-1], rtol=0.1, atol=0.1)
    assert TaughtNovelty().merge(merged).count == 1200
    assert merged.merge(TaughtNovelty()) == merged
    x, y, first = halves()
    clf = fresh("moments").fit(x[first], y[first])
    more = fresh("moments").fit(x[~first], y[~first])
    counts = clf.taught_novelty_.count + more.taught_novelty_.count
    assert clf.merge(more).taught_novelty_.count == counts
    assert (clf.familiarity(x) > 0.05).mean() > 0.85
    assert (clf.familiarity(x + 40) < 0.1).all()  # of few samples, those of a pair look odd, too


def test_an_empty_side_changes_nothing() -> None:
    x, y = samples()
    full = fresh("moments").fit(x, y)
    with pytest.raises(Exception, match="not fitted"):
        full.merge(fresh("moments"))
    alike(full, fresh("moments").fit(x, y))


# --------------------------------------------------------------------------- what cannot be merged


def refused(one: FrugalClassifier, other: FrugalClassifier, text: str, **how: Any) -> None:
    """An error with this text, after which both are what they were."""
    x = np.zeros((1, one.n_features_in_))
    before, history = one.model_.predict_proba(x), one.history_
    with pytest.raises(InputError, match=text):
        one.merge(other, **how)
    np.testing.assert_array_equal(one.model_.predict_proba(x), before)
    assert one.history_ == history


def test_other_features_cannot_be_merged() -> None:
    one, other = (fresh("moments").fit(*samples(dim=dim)) for dim in (8, 9))
    refused(one, other, "one was taught 8 features, the other 9; only what one encoder made")


def test_other_encoders_cannot_be_merged() -> None:
    one, other = (fresh("moments").fit(*samples()) for _ in range(2))
    known = {"encoder": "onnx", "model": "lite0", "weights": "1", "preprocessing": "a"}
    for name in ("encoder", "weights", "preprocessing", "unit", "views"):
        one.encoder_, other.encoder_ = known, {**known, name: "2", "model": "lite1"}
        refused(one, other, f"encoder onnx lite0, .* the other with .* lite1, .*: {name} differ")
    other.encoder_ = {**known, "more": "of no account"}
    one.merge(other)
    assert one.encoder_ == known


def test_an_encoder_that_one_side_does_not_know_is_taken_over() -> None:
    one, other = (fresh("moments").fit(*samples()) for _ in range(2))
    other.encoder_ = {"encoder": "onnx", "model": "lite0"}
    assert one.merge(other).encoder_ == other.encoder_


def test_other_parts_cannot_be_merged() -> None:
    one = fresh("moments").fit(*samples())
    for case, text in {
        "gaussian-shared": "one has MomentMemory, the other GaussianMemory; memory and head must",
        "moments, lda": "one has BayesHead, the other StreamingLDAHead; memory and head must be",
    }.items():
        refused(one, fresh(case).fit(*samples()), text)


def test_other_settings_cannot_be_merged() -> None:
    x, y = samples()
    shared, full = (FrugalClassifier(f"gaussian-{kind}", "lda").fit(x, y)
                    for kind in ("shared", "full"))  # fmt: skip
    refused(shared, full, "one memory has shared covariances, the other full ones")
    rooted = FrugalClassifier(MomentMemory(root=True)).fit(x, y)
    refused(fresh("moments").fit(x, y), rooted, "teach one of them again with root=True or")


def test_what_is_no_sum_cannot_be_merged() -> None:
    one, other = (FrugalClassifier(MeanMemory(), "nearest-mean").fit(*samples()) for _ in range(2))
    refused(one, other, "MeanMemory cannot be merged: it is no sum. Memories 'moments', ")


def test_labels_must_be_of_one_kind_and_differ() -> None:
    x, y = samples()
    one, other = fresh("moments").fit(x, y), fresh("moments").fit(x, y)
    refused(one, fresh("moments").fit(x, np.arange(len(y)) % 3), "use labels of one kind")
    refused(one, other, "two classes would be called 'ant'", rename={"bee": "ant"})
    with pytest.raises(UnknownClassError, match="class 'ape' was never taught"):
        one.merge(other, rename={"ape": "ant"})
    for bad in ("", "a\x1b[31m"):
        refused(one, other, "expected a name that can be read", rename={"bee": bad})
    refused(one, other, "use labels of one kind", rename={"bee": 5})


def test_a_head_that_is_due_is_fitted() -> None:
    pytest.importorskip("torch")
    x, y, first = halves()
    one = FrugalClassifier("store-all", "cosine")
    one.partial_fit(x[first], y[first], defer_head=True)
    other = FrugalClassifier("store-all", "cosine").fit(x[~first], y[~first])
    one.merge(other)
    assert not one.head_stale_
    assert accuracy(one.predict(x), y) > 0.8


# --------------------------------------------------------------------------- two classes become one


def test_two_classes_become_one() -> None:
    x, y = samples()
    clf = fresh("moments").fit(x, y)
    assert clf.merge_classes("bee", "dax") is clf
    densities(clf, fresh("moments").fit(x, np.where(y == "dax", "bee", y)))
    assert clf.model_.classes.tolist() == ["ant", "bee", "cat", "emu"]
    event = clf.history_[-1]
    assert (event["action"], event["from"]) == ("merge-classes", ["bee", "dax"])
    assert event["classes"] == {"bee": 16}
    clf.partial_fit(x[y == "dax"], y[y == "dax"])  # it may be taught again, as a new one
    assert clf.model_.numbers.tolist() == [0, 1, 2, 4, 5]


def test_what_cannot_become_one_class() -> None:
    x, y = samples()
    clf = fresh("moments").fit(x, y)
    before = clf.model_.predict_proba(x)
    for label, joined, error, text in (
        ("bee", "bee", InputError, "class 'bee' cannot be joined with itself"),
        ("bee", "ape", UnknownClassError, "class 'ape' was never taught"),
        ("ape", "bee", UnknownClassError, "class 'ape' was never taught"),
    ):
        with pytest.raises(error, match=text):
            clf.merge_classes(label, joined)
    np.testing.assert_array_equal(clf.model_.predict_proba(x), before)
    with pytest.raises(InputError, match="cannot join two classes; memory 'moments' with head 'b"):
        fresh("gaussian-shared").fit(x, y).merge_classes("bee", "dax")


# --------------------------------------------------------------------------- streams


def stream(case: str, batches: list[tuple[Array, Array]]) -> FrugalClassifier:
    clf = fresh(case)
    for batch in batches:
        clf.partial_fit(*batch)
    return clf


@pytest.mark.parametrize("case", SUMS)
@settings(max_examples=6)
@given(data=st.data())
def test_batches_in_any_order_are_all_at_once(case: str, data: st.DataObject) -> None:
    x, y = samples(each=6)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(y) - 1), max_size=5)))
    clf = stream(case, [(x[rows], y[rows]) for rows in np.split(order, cuts)])
    same(case, clf, fresh(case).fit(x, y))


@pytest.mark.parametrize("case", SUMS)
def test_one_sample_after_the_other_is_all_at_once(case: str) -> None:
    x, y = samples(each=5)
    order = np.random.default_rng(3).permutation(len(y))
    same(case, stream(case, [(x[[row]], y[[row]]) for row in order]), fresh(case).fit(x, y))


def test_a_stream_counts_tasks_by_new_classes() -> None:
    x, y = samples()
    clf = fresh("moments").partial_fit(x[y == "ant"][:4], ["ant"] * 4)
    clf.partial_fit(x[np.isin(y, ["ant", "bee"])], y[np.isin(y, ["ant", "bee"])])
    clf.partial_fit(x[y == "ant"][:2], ["ant"] * 2)
    assert clf.n_tasks_ == 2
    assert clf.model_.task_of_class.tolist() == [0, 1]
    assert clf.model_.n_samples_of_class.tolist() == [18, 12]
    assert [event["classes"] for event in clf.history_] == [
        {"ant": 4}, {"ant": 12, "bee": 12}, {"ant": 2},
    ]  # fmt: skip


@pytest.mark.parametrize("case", ["moments", "gaussian-shared", "nearest mean"])
def test_samples_are_taken_out_of_a_classifier(case: str) -> None:
    x, y, _ = halves()
    if case == "gaussian-shared":
        with pytest.raises(InputError, match="GaussianMemory cannot take samples out again"):
            fresh(case).fit(x, y).unlearn("bee", x[y == "bee"][:3])
        return
    clf = fresh(case).fit(x, y)
    gone = np.flatnonzero(y == "bee")[:3]
    clf.unlearn("bee", x[gone])
    left = np.delete(np.arange(len(y)), gone)
    same(case, clf, fresh(case).fit(x[left], y[left]))
    assert clf.history_[-1]["action"] == "unlearn"
    with pytest.raises(InputError, match="forget the class"):
        clf.unlearn("bee", x[y == "bee"])
    same(case, clf, fresh(case).fit(x[left], y[left]))


@pytest.mark.parametrize("case", ["moments", "moments, cut", "nearest mean"])
def test_a_class_is_forgotten_by_its_samples(case: str) -> None:
    x, y = samples()
    clf, left = fresh(case).fit(x, y), y != "bee"
    with pytest.raises(InputError, match="was taught 12 samples, and 2 were given to remove"):
        clf.forget("bee", x[y == "bee"][:2])
    assert clf.forget("bee", x[y == "bee"]) == []
    same(case, clf, fresh(case).fit(x[left], y[left]))
