"""Mutated files and random sequences of verbs: a clean error or the right answer, every time."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli import main as cli
from frugalvae.images.feature_file import Features, write_features
from frugalvae.maths.arrays import Array
from frugalvae.storage.model_file import from_bytes, to_bytes
from tests.fuzzing import LEAST_ROOM, MUTATIONS, Fuzzer, kinds, limited_memory, mutated, one_parser

CASES, BLOCK = 300, 100

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is looked up in /proc")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("fuzzer"))


@needs_linux
@pytest.mark.parametrize("first", range(0, CASES, BLOCK))
def test_a_mutated_file_gets_a_clean_error_or_the_right_answer(fuzzer: Fuzzer, first: int) -> None:
    with limited_memory():
        trials = [fuzzer.try_case(case) for case in range(first, first + BLOCK)]
    wrong = [str(trial) for trial in trials if trial.faults]
    assert not wrong, "\n".join(wrong)
    accepted = sum(trial.loaded for trial in trials)
    assert 0 < accepted < BLOCK  # or one of the two outcomes would go untested


def test_every_kind_of_file_and_of_mutation_is_tried(fuzzer: Fuzzer) -> None:
    """Or a mutation that always fails would go unnoticed."""

    def seen(document: Any, arrays: dict[str, Array]) -> str:
        return repr(
            (document, {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()})
        )

    changed = set()
    for mutation in MUTATIONS:
        for kind, content in fuzzer.contents.items():
            document, arrays = from_bytes(content)
            before = seen(document, arrays)
            for seed in range(5):
                try:
                    mutation(document, arrays, random.Random(seed))
                except (LookupError, TypeError, ValueError, AttributeError):
                    continue
            after = seen(document, arrays)
            changed |= {(mutation.__name__, kind)} if before != after else set()
    assert {name for name, _ in changed} == {mutation.__name__ for mutation in MUTATIONS}
    assert {kind for _, kind in changed} == kinds().keys()
    assert mutated(content, random.Random(1)) == mutated(content, random.Random(1))


# --------------------------------------------------------------------------- small files


def written(kind: str, fuzzer: Fuzzer, change: Callable[[Any, Any], None]) -> bytes:
    document, arrays = copy.deepcopy(from_bytes(fuzzer.contents[kind]))
    change(document, arrays)
    del document["sha256"], document["format"]
    return to_bytes(document, arrays)


def many_tasks(document: Any, arrays: Any) -> None:
    document["n_tasks"] = document["n_taught"] = 2 * 10**8


def one_long_label(document: Any, arrays: Any) -> None:
    count = 20_000
    names = [f"{number}" for number in range(count - 1)] + ["x" * 200_000]
    document["classes"] = {"dtype": "str", "values": names}
    for name in ("numbers", "task_of_class", "n_samples_of_class"):
        document[name] = list(range(count)) if name == "numbers" else [0] * count
    document["n_taught"] = count


BOMBS: dict[str, tuple[str, Callable[[Any, Any], None]]] = {
    "tasks without end": ("diagonal", many_tasks),
    "one long label among many": ("diagonal", one_long_label),
}


@needs_linux
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_does_not_take_much_memory(fuzzer: Fuzzer, name: str) -> None:
    kind, change = BOMBS[name]
    with limited_memory():
        trial = fuzzer.try_content(written(kind, fuzzer, change), kind)
    assert not trial.faults
    assert not trial.loaded
    assert trial.peak < LEAST_ROOM
    assert fuzzer.try_content(fuzzer.contents[kind], kind).loaded


# --------------------------------------------------------------------------- sequences of verbs

NAMES = ["ant", "bee", "cat", "dog", "emu"]


class Oracle:
    """What a file should know: samples by class, in order, and what it knew one change before."""

    def __init__(self) -> None:
        self.samples: dict[str, Array] = {}
        self.before: dict[str, Array] | None = None

    def change(self, samples: dict[str, Array]) -> None:
        self.before, self.samples = self.samples, samples

    def means(self) -> Array:
        return np.stack([x.mean(axis=0) for x in self.samples.values()])


class Sequence:
    """Random verbs on a file, and on the oracle."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.file = folder, folder / "it.frugal"
        self.chance, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.oracle, self.steps = Oracle(), 0

    def rows(self, count: int) -> Array:
        return self.rng.normal(size=(count, 3)).astype(np.float32)

    def run(self, *words: object, code: int = 0) -> None:
        with mock.patch.object(cli, "parser", one_parser):
            assert cli.main([str(word) for word in words]) == code, words

    def step(self) -> str:
        self.steps += 1
        verb = self.chance.choice(["learn", "learn", "update", "rename", "forget", "undo", "again"])
        if not self.oracle.samples and (verb != "undo" or not self.file.exists()):
            verb = "learn"
        getattr(self, verb)()
        return verb

    def known(self) -> str:
        return self.chance.choice(list(self.oracle.samples))

    def learn(self) -> None:
        new = [name for name in NAMES if name not in self.oracle.samples]
        if not new:
            return
        names = sorted(self.chance.sample(new, self.chance.randint(1, min(2, len(new)))))
        taught = {name: self.rows(self.chance.randint(1, 4)) for name in names}
        features = self.folder / f"{self.steps}.npz"
        x = np.concatenate(list(taught.values()))
        y = np.array([name for name, rows in taught.items() for _ in rows])
        write_features(features, Features("it", x, y, x, y))
        first = [] if self.file.exists() else ["--memory", "store-all", "--head", "nearest-mean"]
        again = [f"--again={name}" for name in names]  # it may have been forgotten, or renamed
        self.run("learn", self.file, features, "--quiet", *first, *again)
        self.oracle.change(self.oracle.samples | taught)

    def update(self, repeated: bool = False) -> None:
        name, rows = self.known(), self.rows(self.chance.randint(1, 3))
        features = self.folder / f"{self.steps}.npz"
        np.savez(features, x=rows)
        for _ in range(1 + repeated):  # the same once more counts once
            self.run("learn", self.file, features, "--class", name, "--quiet")
        samples = self.oracle.samples
        self.oracle.change(samples | {name: np.concatenate([samples[name], rows])})

    def again(self) -> None:
        self.update(repeated=True)

    def rename(self) -> None:
        old, new = self.known(), self.chance.choice(NAMES)
        taken = new in self.oracle.samples
        self.run("rename", self.file, old, new, "--quiet", code=2 if taken else 0)
        if not taken:
            samples = self.oracle.samples
            self.oracle.change({new if name == old else name: x for name, x in samples.items()})

    def forget(self) -> None:
        name = self.known()
        self.run("forget", self.file, name, "--quiet")
        self.oracle.change({n: x for n, x in self.oracle.samples.items() if n != name})

    def undo(self) -> None:
        before = self.oracle.before
        self.run("undo", self.file, "--quiet", code=2 if before is None else 0)
        if before is not None:
            self.oracle.samples, self.oracle.before = before, None

    def check(self) -> None:
        loaded: Any = FrugalClassifier.load(self.file)
        samples = self.oracle.samples
        assert loaded.model_.classes.tolist() == list(samples)
        assert loaded.model_.n_samples_of_class.tolist() == [len(x) for x in samples.values()]
        for number, x in zip(loaded.model_.numbers.tolist(), samples.values(), strict=True):
            assert np.array_equal(loaded.memory_.features_[number], x)
        if not samples:
            return
        queries = self.rows(5)
        distances = ((queries[:, None] - self.oracle.means()) ** 2).sum(axis=2)
        expected = np.array(list(samples))[distances.argmin(axis=1)]
        assert loaded.predict(queries).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_random_verbs_do_what_an_oracle_says(tmp_path: Path, seed: int) -> None:
    sequence, done = Sequence(tmp_path, seed), []
    for _ in range(25):
        done.append(sequence.step())
        sequence.check()
    assert len(set(done)) >= 4
