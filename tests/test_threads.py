"""Threads that ask while another teaches: the old state or the new one, never a mixture."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.estimator import NotFittedError
from frugalvae.parts import HEADS
from tests.conftest import blobs, small_head

FIRST, BETWEEN = "class 0", ["class 3", "class 4", "class 5"]
ROUNDS = 40
#: Heads that derive something late; the laboratory's where it is installed.
LATE = ("bayes", "acil", "anacp", "fecam", "fly-cl", "klda", "knn", "lr-rgda", "ranpac")


def named(classes: list[int], **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    task = blobs(classes, **settings)
    return task.features, np.array([f"class {label}" for label in task.labels.tolist()])


@contextmanager
def asking(question: Callable[[], object], threads: int = 3) -> Iterator[list[BaseException]]:
    """Ask in several threads, over and over, as long as the block lasts; what went wrong."""
    wrong: list[BaseException] = []
    done, asked = threading.Event(), threading.Semaphore(0)

    def ask() -> None:
        try:
            while not done.is_set():
                question()
                asked.release()
        except BaseException as error:
            wrong.append(error)
            asked.release()

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        for _ in workers:
            asked.acquire()  # all of them are under way
        yield wrong
    finally:
        done.set()
        for worker in workers:
            worker.join()


@pytest.mark.parametrize(
    ("memory", "head"),
    [
        ("gaussian-shared", "bayes"),
        ("gaussian-full", "bayes"),
        ("store-all", "ridge"),
        ("none", "lda"),
        ("none", "nearest-mean"),
    ],
)
def test_answers_are_of_the_old_state_or_of_the_new_one(memory: str, head: str) -> None:
    """Classes before and behind others that come and go keep their names all the while."""
    classifier = FrugalClassifier(memory, small_head(head)).fit(*named([0, 1, 2, 9]))
    x, truth = named([0, 9], seed=5)

    def question() -> None:
        assert classifier.predict(x).tolist() == truth.tolist()
        chances = classifier.predict_proba(x)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        model = classifier.model_  # labels and columns of one state
        assert model.classes[model.predict_proba(x).argmax(axis=1)].tolist() == truth.tolist()

    with asking(question) as wrong:
        for _ in range(ROUNDS):
            classifier.partial_fit(*named([3, 4, 5]))
            classifier.partial_fit(*named([4], seed=7))
            classifier.rename("class 1", "another").rename("another", "class 1")
            for label in BETWEEN:
                classifier.forget(label)
    assert not wrong, wrong[0]


def test_what_only_looks_changes_nothing_for_those_who_look_at_the_same_time() -> None:
    classifier = FrugalClassifier().fit(*named([0, 1, 2, 9]))
    x, _ = named([0, 9], seed=5)
    expected = classifier.familiarity(x), classifier.sample(FIRST, 5)

    def question() -> None:
        assert np.array_equal(classifier.familiarity(x), expected[0])
        assert np.array_equal(classifier.sample(FIRST, 5), expected[1])

    fresh = FrugalClassifier().fit(*named([0, 1, 2, 9]))  # whose derived parts are not made yet
    classifier.model_ = fresh.model_
    with asking(question, threads=4) as wrong:
        for _ in range(20):
            classifier.model_ = FrugalClassifier().fit(*named([0, 1, 2, 9])).model_
    assert not wrong, wrong[0]


def test_whoever_teaches_waits_for_whoever_teaches() -> None:
    classifier = FrugalClassifier().fit(*named([0, 9]))
    teachers = [
        threading.Thread(target=classifier.partial_fit, args=named([label]))
        for label in range(1, 9)
    ]
    for teacher in teachers:
        teacher.start()
    for teacher in teachers:
        teacher.join()
    assert sorted(classifier.classes_.tolist()) == [f"class {label}" for label in range(10)]
    assert classifier.n_tasks_ == 9
    x, truth = named(list(range(10)), seed=5)
    assert classifier.predict(x).tolist() == truth.tolist()


def test_asked_before_anything_is_taught_it_says_so_and_then_it_answers() -> None:
    x, truth = named([0, 9], seed=5)
    for _ in range(ROUNDS):
        classifier = FrugalClassifier()

        def question(classifier: FrugalClassifier = classifier) -> None:
            with suppress(NotFittedError):
                assert classifier.predict(x).tolist() == truth.tolist()

        with asking(question) as wrong:
            classifier.partial_fit(*named([0, 9]))
        assert not wrong, wrong[0]


def test_a_failure_while_others_ask_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier = FrugalClassifier().fit(*named([0, 1, 9]))
    x, truth = named([0, 9], seed=5)
    before = classifier.model_

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(type(classifier.head_), "learn", fail)

    def question() -> None:
        assert classifier.predict(x).tolist() == truth.tolist()

    with asking(question) as wrong:
        for _ in range(ROUNDS):
            with pytest.raises(RuntimeError, match="out of memory"):
                classifier.partial_fit(*named([3]))
    assert not wrong, wrong[0]
    assert classifier.model_ is before


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that are interrupted all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("head", [name for name in LATE if name in HEADS])
def test_the_first_questions_after_loading_may_come_at_once(
    head: str, tmp_path: Path, switching: None
) -> None:
    """What is derived from a file is made when it is first needed, perhaps by several threads."""
    memory = {"bayes": "moments", "knn": "store-all"}.get(head, "none")
    path, (x, _) = tmp_path / "taught.frugal", named([0, 4, 9], seed=5)
    classifier = FrugalClassifier(memory, small_head(head)).fit(*named([0, 1, 4, 9]))
    expected = FrugalClassifier.load(classifier.save(path) or path).model_.logits(x)
    for _ in range(8):
        model, barrier = FrugalClassifier.load(path).model_, threading.Barrier(8)

        def ask(_: int, model: Any = model, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait()
            return model.logits(x)

        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(ask, range(8)):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
