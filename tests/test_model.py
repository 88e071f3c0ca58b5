"""What each verb of a model asks of its memory and head, and what it records; parts are stubs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from frugalvae.digests import DIGEST, NONE
from frugalvae.errors import InputError, KnownClassError, UnknownClassError
from frugalvae.maths.arrays import Array
from frugalvae.model.confidence import TaughtNovelty, novelty_reference
from frugalvae.model.forgetting import forget
from frugalvae.model.model import BY_CLASS, Model, Recipe, Sums, plain
from frugalvae.model.naming import teach_names
from frugalvae.moments.memory import MomentMemory
from frugalvae.parts.bayes import BayesHead
from frugalvae.parts.gaussian import GaussianMemory
from frugalvae.parts.protocols import Component, Replay, Task
from tests import outside
from tests.conftest import blobs


class Memory(outside.MeanMemory):
    """Writes down what it is asked for, and the first number of each generator."""

    def __init__(self, streams: bool = False) -> None:
        super().__init__()
        self.streams = streams
        self.asked: list[Any] = []

    def learn(self, task: Task, rng: np.random.Generator) -> None:
        self.asked.append(("learn", task.labels.tolist(), rng.random()))
        for label in task.classes:
            self.means_.setdefault(label, task.of(label).mean(axis=0))

    def update(self, task: Task, count: int, rng: np.random.Generator) -> None:
        self.asked.append(("update", task.labels.tolist(), count, rng.random()))

    def merge(self, other: Memory, labels: Mapping[int, int]) -> None:
        self.asked.append(("merge", dict(labels)))
        self.means_ |= {labels[theirs]: mean for theirs, mean in other.means_.items()}


class Head(outside.NearestHead):
    """The same, of a head."""

    def __init__(self, needs_every_task: bool = True) -> None:
        super().__init__()
        self.needs_every_task = needs_every_task
        self.asked: list[Any] = []

    def register(self, task: Task) -> None:
        told = {**task.text}, {**task.names}, task.features.shape
        self.asked.append(("register", task.labels.tolist(), *told))

    def learn(self, task: Task, replay: Replay) -> None:
        self.asked.append(("learn", task.labels.tolist(), replay.classes, replay.rng.random()))
        new = [label for label in replay.classes if label not in self.known]
        if new:
            memory: Any = replay.memory
            means = memory.means_ if hasattr(memory, "means_") else memory.sums_.means
            rows = [means[label] for label in new]
            self.centres = np.stack([*self.centres, *rows])
            self.known = self.known + new

    def update(self, task: Task, count: int, replay: Replay) -> None:
        self.asked.append(("update", task.labels.tolist(), count, replay.rng.random()))


def drawn(purpose: str, number: int, seed: int = 7) -> float:
    """The first number of a generator."""
    return float(np.random.default_rng([seed, number, *purpose.encode()]).random())


def fresh(memory: Any = None, head: Any = None, **more: Any) -> Model:
    return Model(Recipe(memory or Memory(), head or Head(), random_state=7, **more))


def rows(*places: float) -> Array:
    """Samples of two features at these places of the first."""
    return np.array([[place, 0.0] for place in places])


def taught(memory: Any = None, head: Any = None, **more: Any) -> Model:
    """Of bee (2 samples) and ant (1), in one task."""
    return fresh(memory, head, **more).learn(rows(0, 9, 1), ["bee", "ant", "bee"])


def asked(model: Model) -> tuple[list[Any], list[Any]]:
    """What memory and head were asked for since they were taught first."""
    memory, head = model.parts()
    return memory.asked[1:], head.asked[2:]  # type: ignore[attr-defined]


# --------------------------------------------------------------------------- before it is taught


def test_parts_are_fresh_and_the_callers_stay_their_own() -> None:
    memory, head = Memory(), Head()
    found = Recipe(memory, head).parts()
    assert [type(part) for part in found] == [Memory, Head]
    assert found[0] is not memory
    assert found[1] is not head
    usual = Recipe().parts()
    assert [type(part) for part in usual] == [MomentMemory, BayesHead]
    assert type(Recipe("none", "lda").parts()[0]).__name__ == "NoMemory"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ((3, None), "memory is 3; expected a name or a memory that knows no class yet, as make_"),
        (("none", 3), "head is 3; expected a name or a head that knows no class yet, as make_head"),
        (("none", "bayes"), "head 'bayes' compares densities, and NoMemory has none"),
    ],
)
def test_what_is_no_part_is_refused(recipe: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        Recipe(*recipe).parts()


def test_parts_that_know_classes_or_lack_methods_are_refused() -> None:
    memory, head = taught().parts()
    with pytest.raises(InputError, match=r"^memory is .*; expected a name or a memory that knows"):
        Recipe(memory, Head()).parts()
    with pytest.raises(InputError, match=r"^head is .*; expected a name or a head that knows no"):
        Recipe(Memory(), head).parts()

    class Poor:
        classes = ()

        def learn(self) -> None:
            pass

    with pytest.raises(InputError, match="^memory 'Poor' has no sample"):
        Recipe(Poor(), Head()).parts()  # type: ignore[arg-type]
    with pytest.raises(InputError, match="^head 'Poor' has no "):
        Recipe(Memory(), Poor()).parts()  # type: ignore[arg-type]


def test_every_purpose_number_and_seed_has_its_own_generator() -> None:
    recipe = Recipe(random_state=7)
    assert recipe.generator("learn", 3).random() == drawn("learn", 3)
    assert recipe.generator("learn", 3, 0).random() == drawn("learn", 3, 0)
    with pytest.raises(InputError, match="^random_state is -1"):
        Recipe(random_state=-1).generator("learn", 3)
    with pytest.raises(InputError, match=r"^random_state is 0\.5"):
        recipe.generator("learn", 3, 0.5)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- learning


def test_new_classes_are_learned_at_once() -> None:
    text = {"ant": [1.0, 0.0], "bee": [0.0, 1.0]}
    model = fresh().learn(rows(0, 9, 1), ["bee", "ant", "bee"], text=text, names={"ant": "an ant"})
    memory, head = model.parts()
    assert memory.asked == [("learn", [1, 0, 1], drawn("learn", 0))]  # type: ignore[attr-defined]
    register, learn = head.asked  # type: ignore[attr-defined]
    assert learn == ("learn", [1, 0, 1], [0, 1], drawn("head", 0))
    assert register[:2] == ("register", [1, 0, 1])
    assert {label: vector.tolist() for label, vector in register[2].items()} == {
        0: [1, 0],
        1: [0, 1],
    }
    assert register[3][0] == "an ant"
    lists = {name: getattr(model, name).tolist() for name in BY_CLASS}
    assert lists == {
        "classes": ["ant", "bee"],
        "numbers": [0, 1],
        "task_of_class": [0, 0],
        "n_samples_of_class": [1, 2],
    }
    assert (model.n_tasks, model.n_taught, model.n_features) == (1, 2, 2)
    assert not model.head_stale


def test_known_classes_get_more_samples_before_new_ones_are_learned() -> None:
    model = taught().learn(rows(2, 20, 3, 10), ["bee", "cat", "bee", "ant"])
    in_memory, in_head = asked(model)
    rng = np.random.default_rng([7, 1, *b"learn"])
    assert in_memory == [
        ("update", [0], 1, rng.random()),
        ("update", [1, 1], 2, rng.random()),
        ("learn", [2], rng.random()),
    ]
    rng = np.random.default_rng([7, 1, *b"head"])
    assert in_head == [
        ("register", [2], {}, {2: "cat"}, (1, 2)),
        ("update", [0], 1, rng.random()),
        ("update", [1, 1], 2, rng.random()),
        ("learn", [2], [0, 1, 2], rng.random()),
    ]
    assert model.classes.tolist() == ["ant", "bee", "cat"]
    assert model.task_of_class.tolist() == [0, 0, 1]
    assert model.n_samples_of_class.tolist() == [2, 4, 1]
    assert (model.n_tasks, model.n_taught) == (2, 3)


def test_known_classes_alone_are_an_update_and_no_task() -> None:
    model = taught().learn(rows(2), ["bee"])
    in_memory, in_head = asked(model)
    assert in_memory == [("update", [1], 2, drawn("update", 1))]
    assert in_head[1:] == [("update", [1], 2, drawn("head", 0))]
    assert (model.n_tasks, model.n_taught) == (1, 2)
    assert "task" not in model.history[-1]


def test_what_can_add_all_samples_does_so() -> None:
    model = taught(Memory(streams=True), Head(needs_every_task=False))
    more = model.learn(rows(2, 20), ["bee", "cat"])
    in_memory, in_head = asked(more)
    assert in_memory == [("learn", [1, 2], drawn("learn", 1))]
    assert in_head[1:] == [("learn", [1, 2], [0, 1, 2], drawn("head", 1))]
    in_memory, in_head = asked(model.learn(rows(2), ["bee"]))
    assert in_memory == [("learn", [1], drawn("update", 1))]
    assert in_head[1:] == [("learn", [1], [0, 1], drawn("head", 0))]


def test_a_head_may_be_left_for_later_if_it_can_see_all_at_once() -> None:
    late = Head(needs_every_task=False)
    model = fresh(head=late).learn(rows(0, 9), ["a", "b"], defer_head=True)
    assert model.head_stale
    assert [each[0] for each in model.parts()[1].asked] == ["register"]  # type: ignore[attr-defined]
    for verb in (model.predict, model.predict_proba):
        with pytest.raises(InputError, match="^the head was not fitted after the last task"):
            verb(rows(0))
    with pytest.raises(InputError, match="^the head was not fitted after the last task"):
        model.memory_report()
    still = model.learn(rows(1), ["a"])
    assert still.head_stale, "more of known classes does not fit it"
    fitted = still.fit_head()
    assert not fitted.head_stale
    last = fitted.parts()[1].asked[-1]  # type: ignore[attr-defined]
    assert last == ("learn", [], [0, 1], drawn("head", 0))
    assert fitted.predict(rows(0, 9)).tolist() == ["a", "b"]
    assert fitted.fit_head() is fitted
    assert not still.learn(rows(20), ["c"]).head_stale, "new classes do"
    assert not fresh().learn(rows(0, 9), ["a", "b"], defer_head=True).head_stale, "one that cannot"


def test_labels_have_one_kind_and_are_names_or_whole_numbers() -> None:
    model = taught()
    before = model.classes.tolist()
    for labels, message in (
        ([3], "labels like 3 were given"),
        (["a\x1b"], "."),
        ([], "."),
    ):
        with pytest.raises(InputError, match=message):
            model.learn(rows(*[0] * max(1, len(labels))), labels)
    with pytest.raises(InputError, match=r"calibrate is 'yes'"):
        fresh(calibrate="yes").learn(rows(0), ["a"])
    with pytest.raises(InputError, match=r"\(n, 2\)"):
        model.learn(np.zeros((1, 3)), ["a"])
    assert model.classes.tolist() == before
    assert fresh().learn(np.zeros((1, 3)), ["a"]).n_features == 3


def test_numbers_stay_with_their_classes() -> None:
    model, _ = forget(taught(), "ant")
    model = model.learn(rows(30, 40), ["dog", "ape"])
    assert model.classes.tolist() == ["bee", "ape", "dog"]
    assert model.numbers.tolist() == [1, 2, 3]
    assert model.number_of == {"bee": 1, "ape": 2, "dog": 3}
    assert model.count_of == {1: 2, 2: 1, 3: 1}
    assert model.classes[model.ascending].tolist() == ["ape", "bee", "dog"]
    assert taught().ascending == slice(None)
    model = fresh().learn(rows(0), ["c"]).learn(rows(1, 2), ["a", "b"])
    assert model.classes[model.ascending].tolist() == ["a", "b", "c"]


def test_nothing_that_is_not_finite_is_learned() -> None:
    class Broken(Memory):
        def learn(self, task: Task, rng: np.random.Generator) -> None:
            self.means_ = {label: np.full(2, np.inf) for label in task.classes}

    with pytest.raises(InputError, match=r"^learning gave numbers that are NaN or infinite \(Brok"):
        taught(Broken())


def test_a_calibrated_model_is_fitted_with_new_classes_alone() -> None:
    task = blobs([0, 1, 2], dim=4)
    x, y = task.features, task.labels
    plain_, calibrated = (
        Model(Recipe("gaussian-diagonal", "nearest-mean", calibrate=how)).learn(x, y)
        for how in (False, True)
    )
    assert plain_.calibration.temperature == 1.0 != calibrated.calibration.temperature
    again = calibrated.learn(x[:5], y[:5])
    assert again.calibration == calibrated.calibration
    memory, head = plain_.recipe.parts()
    rng = np.random.default_rng([0, 0, *b"calibration"])
    head.register(Task(x, y))
    expected = plain_.calibration.refitted(memory, head, Task(x, y), rng)
    assert calibrated.calibration == expected
    deferred = Model(Recipe("gaussian-diagonal", "ridge", calibrate=True))
    assert deferred.learn(x, y, defer_head=True).calibration.temperature == 1.0
    for memory_, head_ in (("moments", "lda"), ("moments", Head()), ("gaussian-diagonal", "bayes")):
        other = Model(Recipe(memory_, head_, calibrate=True)).learn(*few())
        assert other.calibration.temperature != 1.0
    tempered = Model(Recipe(calibrate=True)).learn(x, y)
    assert tempered.calibration.temperature == 1.0, "its answers are as sure as they should be"


# --------------------------------------------------------------------------- sums, digests


def sums(**counts: int) -> Sums:
    """Of classes at 30, 40, ..., in the order of the words."""
    memory = Memory()
    memory.means_ = {n: np.array([30.0 + 10 * n, 0.0]) for n in range(len(counts))}
    return Sums(np.array([*counts]), memory, dict(enumerate(counts.values())))


def test_sums_are_learned_as_if_their_samples_had_come() -> None:
    given = sums(cat=5, bee=3)
    assert given.present.tolist() == ["cat", "bee"]
    model = taught(Memory(streams=True), Head(False)).learn(rows(2), ["ant"], sums=given)
    in_memory, in_head = asked(model)
    assert in_memory == [("merge", {0: 2, 1: 1}), ("learn", [0], drawn("update", 1))]
    assert in_head[0][:2] == ("register", [2])
    assert in_head[0][-1] == (0, 2)
    assert model.classes.tolist() == ["ant", "bee", "cat"]
    assert model.n_samples_of_class.tolist() == [2, 5, 5]
    assert model.history[-1]["classes"] == {"ant": 1, "bee": 3, "cat": 5}
    assert model.history[-1]["task"] == 1


def test_sums_may_come_alone() -> None:
    model = taught(Memory(streams=True), Head(False))
    alone = model.learn(np.empty((0, 2)), np.array([], "<U1"), sums=sums(cat=5))
    assert asked(alone)[0] == [("merge", {0: 2})]
    assert (alone.n_samples_of_class.tolist(), alone.n_features) == ([1, 2, 5], 2)


def test_digests_are_kept_by_class() -> None:
    def u(*numbers: int) -> Any:
        return np.array([b"%d" % number if number else NONE for number in numbers], DIGEST)

    model = fresh().learn(rows(0, 9), ["a", "b"], digests={"a": u(5), "b": u(7)})
    model = model.learn(rows(8), ["b"], digests={"b": u(3)})
    assert {n: of.tolist() for n, of in model.digests.items()} == {0: [b"5"], 1: [b"3", b"7"]}
    model = model.withholding({"a": u(9, 0, 8, 9), "other": u(1)})
    assert {n: of.tolist() for n, of in model.withheld.items()} == {0: [b"8", b"9"]}
    moved = model.withholding({"b": u(9)})
    assert {n: of.tolist() for n, of in moved.withheld.items()} == {0: [b"8", b"9"], 1: [b"9"]}
    learned = moved.learn(rows(1), ["a"], digests={"a": u(9)})
    assert {n: of.tolist() for n, of in learned.withheld.items()} == {0: [b"8"], 1: [b"9"]}
    assert model.learn(rows(1), ["a"]).digests == model.digests
    [component] = model.memory_report().components[2:]
    assert component == Component("digests of photographs", 0, 5, 5 * 16)
    assert "digests" not in taught().memory_report().components[-1].name


# --------------------------------------------------------------------------- one class, and rename


def test_more_of_one_class() -> None:
    model = taught().learn(rows(2, 3), ["bee", "bee"])
    in_memory, in_head = asked(model)
    assert in_memory == [("update", [1, 1], 2, drawn("update", 1))]
    assert in_head[1:] == [("update", [1, 1], 2, drawn("head", 0))]
    assert model.n_samples_of_class.tolist() == [1, 4]
    event = model.history[-1]
    assert (event["action"], event["classes"]) == ("learn", {"bee": 2})


def test_an_event_says_what_was_done_when() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    event = taught().history[-1]
    assert (event["action"], event["classes"], event["task"]) == ("learn", {"ant": 1, "bee": 2}, 0)
    assert len(event["when"]) == len("2026-01-01T00:00:00+00:00")
    assert before <= datetime.fromisoformat(event["when"]) <= datetime.now(UTC)
    assert len(taught().recorded("other", {3: np.int64(4)}, more=5).history) == 2
    last = taught().recorded("other", {3: np.int64(4)}, more=5).history[-1]
    assert (last["classes"], last["more"], type(last["classes"]["3"])) == ({"3": 4}, 5, int)


def test_a_class_has_another_name_from_now_on() -> None:
    model = taught()
    renamed = model.rename("ant", "hymenopteran")
    assert renamed.classes.tolist() == ["hymenopteran", "bee"]
    assert renamed.predict(rows(9, 0)).tolist() == ["hymenopteran", "bee"]
    assert renamed.aliases == {"ant": "hymenopteran"}
    event = renamed.history[-1]
    told = (event["action"], event["from"], event["to"], event["classes"])
    assert told == ("rename", "ant", "hymenopteran", {"hymenopteran": 1})
    assert renamed.learn(rows(50), ["ant"]).aliases == {}
    assert model.rename("bee", "bumblebee").classes.tolist() == ["ant", "bumblebee"]
    for new, error, message in (
        ("bee", KnownClassError, "class 'bee' is already known; choose another name, or make one"),
        (["cat"], InputError, r"the new label is \['cat'\]; expected one label, such as"),
        (3, InputError, "labels like 3 were given"),
        ("\x1b", InputError, "."),
    ):
        with pytest.raises(error, match=message):
            model.rename("ant", new)


def test_a_prompt_of_the_old_name_is_one_of_the_new() -> None:
    model = taught()
    assert model.head is not None
    model.head.names_ = {0: "ant", 1: "a bee"}  # type: ignore[attr-defined]
    for old, names in (("ant", {0: "new", 1: "a bee"}), ("bee", {0: "ant", 1: "a bee"})):
        assert model.rename(old, "new").head.names_ == names  # type: ignore[union-attr]
    assert model.head.names_ == {0: "ant", 1: "a bee"}  # type: ignore[attr-defined]


# --------------------------------------------------------------------------- answers


def test_columns_are_in_the_order_of_the_classes() -> None:
    model = taught()
    head = model.parts()[1]
    head.known, head.centres = head.known[::-1], head.centres[::-1]  # type: ignore[attr-defined]
    model = replace(model, head=head)
    np.testing.assert_allclose(model.logits(rows(0.5)), [[-72.25, 0.0]])
    assert model.predict(rows(0, 9)).tolist() == ["bee", "ant"]
    calibration = replace(model.calibration, temperature=72.25)
    warm = replace(model, calibration=calibration).predict_proba(rows(0.5))
    np.testing.assert_allclose(warm[0, 0] / warm[0, 1], np.exp(-1))


def moments(per_class: int = 30, apart: float = 1.0) -> tuple[Model, Array]:
    rng = np.random.default_rng(0)
    labels = np.arange(5).repeat(per_class)
    x = apart * rng.normal(size=(5, 5))[labels] + rng.normal(size=(len(labels), 5))
    test = apart * rng.normal(size=(200, 5))
    return Model(Recipe()).learn(x, np.array([*"edcba"])[labels]), test


@pytest.mark.parametrize("apart", [0.4, 1.0])
@pytest.mark.parametrize("error", [0.0, 0.05, 0.3, 0.5, 0.7, 1.0])
def test_an_answer_is_sure_if_its_lead_is_large_and_it_is_likely(
    error: float, apart: float
) -> None:
    model, x = moments(apart=apart)
    assert model.forecast is not None
    lead, power = model.forecast.lead_for_error(error), model.memory.tempering  # type: ignore[union-attr]
    scores, probabilities = model.logits(x) / power, model.predict_proba(x)
    expected = [
        np.diff(np.sort(row)[-2:])[0] >= lead and p.max() >= min(0.5, 1 - error)
        for row, p in zip(scores, probabilities, strict=True)
    ]
    assert model.is_reliable(x, error).tolist() == expected


@pytest.mark.parametrize("coverage", [0.0, 0.2, 0.5, 0.8, 0.99, 1.0])
def test_a_set_has_what_is_near_the_best_and_is_likely_together(coverage: float) -> None:
    model, x = moments()
    assert model.forecast is not None
    gap, power = model.forecast.gap_for_coverage(coverage), model.memory.tempering  # type: ignore[union-attr]
    expected = []
    for scores, p in zip(model.logits(x) / power, model.predict_proba(x), strict=True):
        order = np.argsort(-scores)
        near = int((scores >= scores.max() - gap).sum())
        likely = next((n for n in range(1, 6) if p[order[:n]].sum() >= min(0.5, coverage)), 5)
        expected.append(model.classes[order[: max(near, likely)]].tolist())
    assert model.predict_set(x, coverage) == expected


def test_promises_are_asked_for_in_shares_and_need_held_out_samples() -> None:
    model, x = moments()
    for share in (-0.1, 1.1):
        with pytest.raises(InputError, match=f"^error is {share}"):
            model.is_reliable(x, share)
        with pytest.raises(InputError, match=f"^coverage is {share}"):
            model.predict_set(x, share)
    for other in (taught(), Model(Recipe(MomentMemory(), "lda")).learn(*few())):
        with pytest.raises(InputError, match="^no samples were held out, so nothing can be prom"):
            other.is_reliable(np.zeros((1, other.n_features)), 0.1)
    with pytest.raises(InputError, match="^no samples were held out, so nothing can be promised"):
        Model(Recipe()).learn(x[:2], ["a", "b"]).is_reliable(x, 0.1)
    assert taught().forecast is None
    assert taught().expected_accuracy() == {}
    named = model.learn(*few(), text=dict.fromkeys(["x", "y"], np.ones(5)))
    with pytest.raises(InputError, match="^class names take part in answers"):
        named.predict_set(x, 0.9)


def few() -> tuple[Array, list[str]]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(40, 5)), ["x", "y"] * 20


def test_what_is_expected_is_told_by_label() -> None:
    model, _ = moments()
    assert model.forecast is not None
    assert model.forecast.labels == [*"abcde"] == model.classes.tolist()
    expected = dict(zip("abcde", model.forecast.of_classes.tolist(), strict=True))
    assert model.expected_accuracy() == expected


# --------------------------------------------------------------------------- familiarity, samples


def test_familiarity_compares_with_what_was_taught() -> None:
    model, x = moments()
    reference = novelty_reference(
        model.memory, np.random.default_rng([0, 0, *b"familiarity"]), "fit"
    )  # type: ignore[arg-type]
    expected = model.taught_novelty.familiarity(reference.novelty(x))
    np.testing.assert_allclose(model.familiarity(x), expected)
    assert 0 < expected.mean() < 1
    bare = replace(model, taught_novelty=TaughtNovelty())
    reference = bare._reference(None)
    taught_ = TaughtNovelty().with_samples(reference.of_replay, reference.score)
    np.testing.assert_allclose(bare.familiarity(x), taught_.familiarity(reference.novelty(x)))
    lone = Model(Recipe()).learn(x[:2], ["a", "b"])
    assert lone.familiarity(x).tolist() == [1.0] * len(x)
    assert lone.learn(x[2:4], ["c", "c"]).familiarity(x).min() < 1


def test_samples_of_a_class_are_drawn_with_its_own_generator() -> None:
    model = taught()
    rng = np.random.default_rng([7, 1, *b"sample"])
    expected = model.memory.sample(1, 3, rng)  # type: ignore[union-attr]
    assert np.array_equal(model.sample("bee", 3), expected)
    assert len(model.sample("bee")) == 1
    assert not np.array_equal(model.sample("bee", 3, seed=8), expected)
    with pytest.raises(InputError, match="^n_samples is 0"):
        model.sample("bee", 0)
    with pytest.raises(InputError, match=r"^n_samples is 1\.5"):
        model.sample("bee", 1.5)  # type: ignore[arg-type]
    with pytest.raises(UnknownClassError):
        model.sample("cat")


def test_a_report_has_the_components_of_both_parts() -> None:
    report = taught().memory_report()
    assert (report.memory, report.classes, report.tasks) == ("Memory", 2, 1)
    assert [part.name for part in report.components] == ["means", "centres"]


def test_the_encoder_is_known_once_something_was_taught() -> None:
    model = replace(taught(), encoder={"encoder": "clip"})
    assert model.remembered == {"encoder": "clip"}
    assert fresh().remembered == {}
    assert taught().remembered is None


def test_a_model_begins_with_nothing() -> None:
    assert Recipe() == Recipe("moments", None, calibrate=False, random_state=0, device=None)
    model = Model(Recipe())
    assert [getattr(model, name).tolist() for name in BY_CLASS] == [[], [], [], []]
    assert (model.n_features, model.n_tasks, model.n_taught, model.head_stale) == (0, 0, 0, False)


def test_parts_to_learn_on_are_copies() -> None:
    model = taught()
    assert model.parts()[0] is not model.memory
    assert model.parts()[1] is not model.head
    assert fresh().parts()[0].classes == []


def test_labels_as_json_knows_them() -> None:
    assert type(plain(np.int64(3))) is int
    assert plain("a") == "a"
    assert GaussianMemory("diagonal").classes == []


# --------------------------------------------------------------------------- further conditions


def test_what_is_given_beside_sums_is_checked_too(caplog: pytest.LogCaptureFixture) -> None:
    model = taught(Memory(streams=True), Head(False))
    with pytest.raises(InputError, match="not finite"):
        model.learn(rows(np.nan), ["ant"], sums=sums(cat=5))
    with pytest.raises(InputError, match=r"shape \(0, 2\)|0 sample"):
        model.learn(np.empty((0, 2)), [])
    with caplog.at_level("INFO", "frugalvae.model"):
        model.learn(rows(2, 30), ["ant", "cat"])
    assert caplog.messages == ["1 new classes, 3 in all"]


def test_sums_may_be_the_first_that_is_learned() -> None:
    model = fresh(Memory(streams=True), Head(False))
    model = model.learn(np.empty((0, 2)), np.array([], "<U1"), sums=sums(cat=5))
    assert model.parts()[1].asked[-1] == ("learn", [], [0], drawn("head", 0))  # type: ignore[attr-defined]
    assert model.n_samples_of_class.tolist() == [5]


def test_generators_go_on_with_tasks_and_events() -> None:
    model = taught().learn(rows(20), ["cat"]).learn(rows(2), ["bee"])
    in_memory, in_head = asked(model)
    assert in_memory[-1] == ("update", [1], 2, drawn("update", 2))
    assert in_head[-1] == ("update", [1], 2, drawn("head", 1))


def test_a_memory_that_says_nothing_of_streams_is_updated_class_by_class() -> None:
    model = fresh(outside.MeanMemory()).learn(rows(0, 9, 1), ["bee", "ant", "bee"])
    model = model.learn(rows(4), ["bee"])
    np.testing.assert_allclose(model.memory.means_[1], [5 / 3, 0], rtol=1e-6)  # type: ignore[union-attr]


def test_an_update_fits_the_head_and_nothing_broken_comes_of_it() -> None:
    model = taught(head=Head(needs_every_task=False))
    assert not model.learn(rows(2), ["bee"]).head_stale
    late = fresh(head=Head(False)).learn(rows(0, 9), ["a", "b"], defer_head=True)
    assert late.memory is not None
    late.memory.means_[0] = np.array([np.inf, 0])  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"^learning gave numbers that are .* \(Head, centres"):
        late.fit_head()
    with pytest.raises(InputError, match="^the head was not fitted after the last task"):
        fresh().predict(rows(0))


def test_a_head_that_reads_the_memory_reads_the_one_of_its_model() -> None:
    x, y = few()
    late = Model(Recipe()).learn(x, y, defer_head=True)
    for model in (late.fit_head(), late.fit_head().rename("x", "z")):
        assert model.head.memory_ is model.memory  # type: ignore[union-attr]


def test_a_memory_that_keeps_nothing_compares_with_nothing() -> None:
    x, y = few()
    model = Model(Recipe("none", "lda")).learn(x, y)
    assert model.taught_novelty == TaughtNovelty()
    assert model.predict(x).shape == (40,)


def test_learning_says_nothing_of_numbers_that_overflow() -> None:
    class Overflows(Memory):
        def learn(self, task: Task, rng: np.random.Generator) -> None:
            np.array([3e38], np.float32) * np.float32(10)
            np.array([np.inf]) - np.inf
            super().learn(task, rng)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert taught(Overflows()).n_tasks == 1


def test_novelty_is_measured_as_that_of_taught_samples_was() -> None:
    x, y = few()
    model = Model(Recipe("gaussian-diagonal", "lda")).learn(x, y)
    rng = np.random.default_rng([0, 0, *b"familiarity"])
    reference = novelty_reference(model.memory, rng, "distance")  # type: ignore[arg-type]
    expected = model.taught_novelty.familiarity(reference.novelty(x))
    np.testing.assert_allclose(model.familiarity(x), expected, rtol=1e-5)
    bare = TaughtNovelty().with_samples(reference.of_replay, "distance")
    expected = bare.familiarity(reference.novelty(x))
    unknown = replace(model, taught_novelty=TaughtNovelty())
    np.testing.assert_allclose(unknown.familiarity(x), expected, rtol=1e-5)
    other = TaughtNovelty(tuple(map(float, range(101))), 7, "fit")  # of another memory
    again = other.with_samples(reference.of_replay, "distance")
    expected = again.familiarity(reference.novelty(x))
    odd = replace(model, taught_novelty=other)
    np.testing.assert_allclose(odd.familiarity(x), expected, rtol=1e-5)


@pytest.mark.parametrize(("most", "found"), [(2, {0, 3, 4}), (5, {0, 2, 4}), (6, None)])
def test_of_many_classes_some_stand_for_the_others(
    most: int, found: set[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = moments()
    asked_for, plain_ = [], MomentMemory.restricted_to

    def restricted_to(memory: MomentMemory, labels: Any) -> Any:
        asked_for.append(labels)
        return plain_(memory, labels)

    monkeypatch.setattr(MomentMemory, "restricted_to", restricted_to)
    monkeypatch.setattr("frugalvae.model.model.CLASSES_COMPARED", most)
    task = Task(x[:3].astype(np.float32), np.array([4, 4, 4]))
    model._reference(None, task)
    assert asked_for == ([] if found is None else [found])
    model._reference(None)
    assert len(asked_for) == (found is not None), "of a file, all are compared"
    gaussian = Model(Recipe("gaussian-diagonal", "nearest-mean")).learn(x[:6], [*"abcdef"])
    gaussian._reference(None, task)  # which has no such verb


# --------------------------------------------------------------------------- names alone


def named(first: bool = True) -> Model:
    """Moments of x and y, if they come first, with the names of these and of a class by name."""
    vectors = dict(zip("xyz", np.eye(5), strict=False))
    if not first:
        return teach_names(Model(Recipe()), {"z": vectors["z"]})
    x, y = few()
    return teach_names(Model(Recipe()).learn(x, y, text={k: vectors[k] for k in "xy"}), vectors)


def test_a_class_by_name_alone_is_listed_without_samples() -> None:
    model = named()
    assert model.classes.tolist() == ["x", "y", "z"]
    assert model.n_samples_of_class.tolist() == [20, 20, 0]
    assert model.by_name == ["z"]
    event = model.history[-1]
    assert (event["action"], event["classes"], event["task"]) == ("learn", {"z": 0}, 1)
    with pytest.raises(InputError, match="^class 'z' is known by name alone: there is nothing to"):
        model.sample("z")
    x, _ = few()
    with pytest.raises(InputError, match="^1 of the classes with samples have no text feature"):
        model.learn(x[:5], ["new"] * 5)
    taught_ = model.learn(x[:5], ["z"] * 5)
    assert (taught_.by_name, taught_.n_samples_of_class.tolist()) == ([], [20, 20, 5])


def test_a_class_by_name_alone_is_new_when_its_samples_come() -> None:
    model = taught()
    assert model.head is not None
    model.head.by_name, model.head.text_ = [0], {0: 1, 1: 1}  # type: ignore[attr-defined]
    in_memory, _ = asked(model.learn(rows(2, 3), ["ant", "bee"]))
    assert [each[:2] for each in in_memory] == [("update", [1]), ("learn", [0])]


def test_a_sample_is_familiar_if_it_is_like_samples_or_like_a_name() -> None:
    model, (x, _) = named(), few()
    reference = model.reference
    samples = model.taught_novelty.familiarity(reference.novelty(x))
    name = model.predict_proba(x)[:, 2]
    np.testing.assert_allclose(model.familiarity(x), 1 - (1 - samples) * (1 - name))
    with pytest.raises(InputError, match="^all classes are known by name alone: there are no samp"):
        named(first=False).familiarity(x)
