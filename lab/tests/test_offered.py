"""Parts of the laboratory: each is offered by its name, and by no other way than anybody's."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.conftest import blobs, parts_of, small_head

import frugalvae_lab.heads
import frugalvae_lab.memories
from frugalvae import FrugalClassifier, make_head
from frugalvae.cli.main import main
from frugalvae.errors import MemoryFileError, UnknownNameError, UntrustedError
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.registry import LABORATORY, Registry


def offered(registry: Registry) -> dict[str, str]:
    """Names of the laboratory's parts, and the classes behind them."""
    found = entry_points(group=registry.group)
    return {one.name: one.attr for one in found if one.module.startswith(f"{LABORATORY}.")}


@pytest.mark.parametrize(
    ("registry", "package", "ending"),
    [(MEMORIES, frugalvae_lab.memories, "Memory"), (HEADS, frugalvae_lab.heads, "Head")],
    ids=["memories", "heads"],
)
def test_every_part_is_offered_and_the_product_knows_where_it_is(
    registry: Registry, package: ModuleType, ending: str
) -> None:
    assert set(offered(registry).values()) == parts_of(package, ending)
    assert set(registry.laboratory) == offered(registry).keys()
    assert not set(registry.laboratory) & set(registry)


@pytest.mark.parametrize(
    ("memory", "head"), [("factors", "bayes"), ("mixture", "nearest-mean"), ("none", "anacp")]
)
def test_a_file_with_such_a_part_loads_where_the_laboratory_is_and_says_so_where_not(
    memory: str, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = blobs_of_two()
    taught = FrugalClassifier(memory, small_head(head)).fit(x, y)
    taught.save(tmp_path / "it.frugal")
    loaded = FrugalClassifier.load(tmp_path / "it.frugal")
    np.testing.assert_array_equal(loaded.predict(x), taught.predict(x))
    monkeypatch.setattr("frugalvae.parts.registry.installed_parts", lambda *_: {})
    with pytest.raises(UntrustedError, match="give --trust frugalvae_lab"):
        FrugalClassifier.load(tmp_path / "it.frugal")  # importable, but not installed
    monkeypatch.setattr("frugalvae.storage.states.find_spec", lambda *_: None)
    with pytest.raises(MemoryFileError, match=r"laboratory, which is not installed; pip install"):
        FrugalClassifier.load(tmp_path / "it.frugal")


def test_without_the_laboratory_its_names_say_where_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("frugalvae.parts.registry.installed_parts", lambda *_: {})
    told = "memory 'factors' is part of the laboratory, which is not installed; pip install ./lab"
    with pytest.raises(UnknownNameError, match=told):
        FrugalClassifier("factors").fit(*blobs_of_two())
    with pytest.raises(UnknownNameError, match="head 'anacp' is part of the laboratory"):
        make_head("anacp")
    with pytest.raises(UnknownNameError, match="there is no head 'anacq'. Known"):
        make_head("anacq")
    with pytest.raises(SystemExit):
        main(["bench", "run"])
    assert "It is 'frugalvae-lab bench': pip install ./lab in" in capsys.readouterr().err


def blobs_of_two() -> tuple[np.ndarray, np.ndarray]:
    task = blobs([0, 1])
    return task.features, task.labels


def test_what_a_file_names_of_the_laboratory_and_is_not_offered_is_refused() -> None:
    from frugalvae.storage.states import class_named

    with pytest.raises(MemoryFileError, match="give --trust frugalvae_lab.bench.pool"):
        class_named("frugalvae_lab.bench.pool:ProcessPool")
