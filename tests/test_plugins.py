"""Parts from outside: by module:Class, and by entry points of an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier, make_head, make_memory
from frugalvae.encoders import ENCODERS, Choice, choose, make_encoder
from frugalvae.errors import InputError, UnknownNameError, UntrustedError
from frugalvae.parts import HEADS, MEMORIES, usual_head
from frugalvae.parts.defaults import HeadDefaults, MemoryDefaults
from frugalvae.parts.registry import settings_of
from frugalvae.testing import ContractError, check_encoder, check_head, check_memory
from tests.conftest import blobs

MODULE = """
import numpy as np
from frugalvae.encoders.defaults import EncoderDefaults
from frugalvae.parts.defaults import HeadDefaults
from frugalvae.parts.defaults import MemoryDefaults


class TinyMemory(MemoryDefaults):
    usual_head = "nearest-mean"

    def __init__(self, size=3):
        if size < 1:
            raise ValueError("size must be positive")
        self.size = size
        self.means_ = {}

    @property
    def classes(self):
        return list(self.means_)

    def learn(self, task, rng):
        self.means_ |= {label: task.of(label).mean(axis=0) for label in task.classes}

    def sample(self, label, count, rng):
        return np.repeat(self.means_[label][None], count, axis=0)


class TinyHead(HeadDefaults):
    def __init__(self, scale=1.0):
        self.scale = scale
        self.means_ = {}

    @property
    def classes(self):
        return list(self.means_)

    def learn(self, task, replay):
        self.means_ |= {label: task.of(label).mean(axis=0) for label in task.classes}

    def logits(self, features):
        means = np.stack(list(self.means_.values())).astype(np.float64)
        return -self.scale * ((features[:, None] - means) ** 2).sum(axis=2)


class TinyEncoder(EncoderDefaults):
    dim, size = 3, 8

    def encode(self, batch):
        return batch.mean(axis=(2, 3))


class Needy(TinyMemory):
    def __init__(self, shelf):
        super().__init__()
        self.shelf = shelf


class Open(TinyMemory):
    def __init__(self, depth=2, **kwargs):
        super().__init__(**kwargs)
        self.depth = depth


class Anything(MemoryDefaults):
    def __init__(self, **kwargs):
        pass

    learn = sample = None


class Half:
    classes = learn = sample = None


def helper():
    pass
"""

ENTRY_POINTS = """
[frugalvae.memories]
tiny = tiny_parts:TinyMemory

[frugalvae.heads]
tiny-head = tiny_parts:TinyHead

[frugalvae.encoders]
tiny-encoder = tiny_parts:TinyEncoder
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of somebody else."""
    (tmp_path / "tiny_parts.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("tiny_parts", None)


@pytest.fixture
def package(module: Path) -> Path:
    """The same, installed."""
    about = module / "tiny_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-parts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return module


# --------------------------------------------------------------------------- module:Class


def test_a_part_is_made_by_where_it_is(module: Path) -> None:
    memory: Any = make_memory("tiny_parts:TinyMemory", size=5)
    assert (memory.size, memory.name) == (5, "tiny_parts:TinyMemory")
    assert settings_of(memory) == {"size": 5}
    assert usual_head("tiny_parts:TinyMemory") == usual_head(memory) == "nearest-mean"
    task = blobs([0, 1, 2])
    classifier = FrugalClassifier("tiny_parts:TinyMemory", "tiny_parts:TinyHead")
    assert classifier.fit(task.features, task.labels).score(task.features, task.labels) == 1
    assert classifier.memory_report().memory == "tiny_parts:TinyMemory"


def test_minimal_parts_keep_all_rules(module: Path) -> None:
    import tiny_parts  # type: ignore[import-not-found]

    check_memory(tiny_parts.TinyMemory)
    check_head(tiny_parts.TinyHead)
    check_encoder(tiny_parts.TinyEncoder)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("tiny_part:TinyMemory", {}, "there is no module 'tiny_part'; run the command in its"),
        ("tiny_parts:TinyMemry", {}, "has no class 'TinyMemry'. Did you mean 'TinyMemory'?"),
        ("tiny_parts:helper", {}, "has no class 'helper'"),
        ("tiny_parts:", {}, "is not of the form module:Class"),
        ("../tiny_parts:TinyMemory", {}, "is not of the form module:Class"),
        ("tiny_parts:Half", {}, "has no update, forget, arrays, components; write that, or inh"),
        ("tiny_parts:TinyMemory", {"sise": 3}, "no setting 'sise'. Did you mean 'size'?"),
        ("tiny_parts:TinyMemory", {"size": 0}, "cannot be made with {'size': 0}: size must be p"),
        ("tiny_parts:Needy", {}, "needs the setting 'shelf'"),
        ("tiny_parts:Anything", {}, "takes **kwargs, so its settings have no names to record"),
        ("tiny", {}, "there is no memory 'tiny'"),
    ],
)
def test_what_is_wrong_is_said(
    name: str, settings: dict[str, Any], message: str, module: Path
) -> None:
    with pytest.raises(InputError) as caught:
        make_memory(name, **settings)
    assert message in str(caught.value)


def test_an_error_in_the_module_is_told_with_its_line(module: Path) -> None:
    (module / "broken_part.py").write_text("import numpy\n\n1 / 0\n")
    with pytest.raises(InputError, match=r"broken_part.py, line 3: ZeroDivisionError"):
        make_memory("broken_part:Memory")
    (module / "lacking_part.py").write_text("import no_such_package_at_all\n")
    with pytest.raises(InputError, match="lacking_part.py, line 1: ModuleNotFoundError"):
        make_memory("lacking_part:Memory")


def test_keyword_arguments_stand_for_those_of_the_base_class(module: Path) -> None:
    memory = make_memory("tiny_parts:Open", depth=1, size=7)
    assert settings_of(memory) == {"depth": 1, "size": 7}


def test_an_object_that_lacks_methods_is_refused_before_it_learns() -> None:
    class Bare:
        classes: list[int] = []  # noqa: RUF012

        def learn(self, task: Any, rng: Any) -> None: ...

    with pytest.raises(InputError, match="memory 'Bare' has no sample, update, .*MemoryDefaults"):
        FrugalClassifier(Bare(), "ridge").fit([[0.0], [1.0]], [0, 1])  # type: ignore[arg-type]


def test_classes_may_be_an_attribute(module: Path) -> None:
    class Listed(MemoryDefaults):
        def __init__(self) -> None:
            self.classes = []  # type: ignore[misc]

        def learn(self, task: Any, rng: Any) -> None:
            self.classes.extend(task.classes)

        def sample(self, label: int, count: int, rng: Any) -> Any:
            return np.zeros((count, 8), np.float32)

    MEMORIES.check(Listed(), "Listed")
    task = blobs([0, 1])
    classifier = FrugalClassifier(Listed(), "nearest-mean").fit(task.features, task.labels)  # type: ignore[arg-type]
    assert classifier.memory_report().stored == 16


# --------------------------------------------------------------------------- entry points


def test_parts_of_an_installed_package_are_known_by_their_names(package: Path) -> None:
    assert make_memory("tiny", size=2).name == "tiny"  # type: ignore[attr-defined]
    assert type(make_head("tiny-head")).__name__ == "TinyHead"
    assert make_encoder("tiny-encoder").dim == 3
    assert "tiny" in MEMORIES
    with pytest.raises(UnknownNameError, match="Did you mean 'tiny'.*store-all, none, tiny"):
        make_memory("tinny")


def test_our_own_names_are_found_without_looking_at_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def looked(*_: Any) -> None:
        raise AssertionError("installed packages were looked at")

    monkeypatch.setattr("frugalvae.parts.registry.installed_parts", looked)
    assert "moments" in MEMORIES
    make_memory("moments")
    make_head("lda")
    with pytest.raises(AssertionError, match="looked at"):
        make_head("another")


def test_a_name_of_ours_cannot_be_taken(package: Path) -> None:
    """Or installing a package would change what a name means."""
    about = package / "tiny_parts-1.0.dist-info" / "entry_points.txt"
    about.write_text("[frugalvae.memories]\nmoments = tiny_parts:TinyMemory\n")
    assert type(make_memory("moments")).__name__ == "MomentMemory"


def test_registries_list_their_own_names_alone(package: Path) -> None:
    assert "tiny" not in list(MEMORIES)
    assert "tiny-head" not in list(HEADS)


# --------------------------------------------------------------------------- trust


def test_an_encoder_that_only_a_file_names_is_not_imported(module: Path) -> None:
    name = "tiny_parts:TinyEncoder"
    remembered = {"encoder": name, "given": {"name": name, "settings": {}}}
    refused = "Nothing that a file names is imported.* give --encoder tiny_parts:TinyEncoder, or"
    with pytest.raises(UntrustedError, match=refused):
        choose(remembered, Choice(), "it.frugal")
    assert "tiny_parts" not in sys.modules
    for named in (Choice(encoder=name), Choice(trust=(name,)), Choice(trust=("tiny_parts",))):
        assert choose(remembered, named, "it.frugal")["name"] == name
    import tiny_parts  # noqa: F401

    with pytest.raises(UntrustedError, match=refused):  # that it is imported says nothing
        choose(remembered, Choice(), "it.frugal")


def test_a_class_is_no_part_before_it_is_made(module: Path) -> None:
    """``subprocess:Popen`` would run a program while it is made."""
    (module / "made_part.py").write_text(
        "class Made:\n    def __init__(self):\n        raise SystemExit('it was made')\n"
    )
    with pytest.raises(InputError, match="memory 'made_part:Made' has no learn, sample, update"):
        make_memory("made_part:Made")
    with pytest.raises(InputError, match="encoder 'made_part:Made' has no prepare, encode, text_f"):
        make_encoder("made_part:Made")
    with pytest.raises(InputError, match="made_part has no class 'run'"):
        make_memory("made_part:run")


def test_a_name_from_elsewhere_is_refused_by_every_registry(module: Path) -> None:
    for registry in (MEMORIES, HEADS, ENCODERS):
        with pytest.raises(
            UntrustedError, match="'tiny_parts', which is not ours.* --trust tiny_p"
        ):
            registry.make("tiny_parts:TinyMemory", {})
    assert "tiny_parts" not in sys.modules


# --------------------------------------------------------------------------- defaults


def test_a_shared_array_is_said_to_remain_and_counted() -> None:
    class Shared(MemoryDefaults):
        def __init__(self) -> None:
            self.means_ = {0: np.zeros(3), 1: np.ones(3)}
            self.scatter_ = np.eye(3)
            self.count_ = 2
            self._derived = np.zeros(99)

        @property
        def classes(self) -> list[int]:
            return list(self.means_)

    memory = Shared()
    assert {name: array.shape for name, array in memory.arrays().items()} == {
        "means": (2, 3),
        "scatter": (3, 3),
        "count": (1,),
    }
    assert sum(part.bytes for part in memory.components()) == 8 * (6 + 9 + 1)
    assert memory.forget(0) == ["scatter_ of Shared was learned from its samples too"]
    assert memory.classes == [1]
    with pytest.raises(InputError, match="Shared does not know its cost before"):
        memory.cost(3, 2)


def test_what_cannot_be_counted_or_dropped_is_refused() -> None:
    class Whole(HeadDefaults):
        def __init__(self) -> None:
            self.classes_ = [0, 1]
            self.weights_ = np.eye(2)

        @property
        def classes(self) -> list[int]:
            return self.classes_

    head = Whole()
    with pytest.raises(InputError, match="keeps nothing per class.*weights_; give it forget"):
        head.forget(0)
    head.rule_ = object()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="rule_ of Whole holds a object; keep arrays"):
        head.arrays()


def test_every_broken_rule_is_named(module: Path) -> None:
    import tiny_parts

    class Wrong(tiny_parts.TinyMemory):  # type: ignore[misc]
        def sample(self, label: int, count: int, rng: np.random.Generator) -> Any:
            return np.random.normal(size=(count, 3))

    with pytest.raises(ContractError) as caught:
        check_memory(Wrong)
    told = str(caught.value)
    assert told.startswith("Wrong breaks ")
    assert "has shape (7, 3) and type float64; expected (7, 8), float32" in told
    assert "it changes np.random's global state" in told
    with pytest.raises(InputError, match="expected the class itself, or a function"):
        check_memory(tiny_parts.TinyMemory())
