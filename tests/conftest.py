from __future__ import annotations

import importlib.util
import inspect
import os
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from frugalvae.errors import EXTRAS, MissingPackageError
from frugalvae.images.feature_file import Features, load_features
from frugalvae.parts import HEADS, make_head, make_memory
from frugalvae.parts.protocols import Head, Memory
from frugalvae.parts.registry import parameters_of
from frugalvae.testing.rules import blobs
from tests.small_clip import clip_on_disk
from tests.tool import Encoders, Tool, paint

#: Whether this is the base installation, without any extra; see ``make test-light``.
LIGHT = bool(os.environ.get("FRUGALVAE_LIGHT"))

#: Tests of what needs them. Whatever is not listed must be right without them.
HEAVY = """
    test_accounting_networks test_bayes test_clip_encoder test_clip_path
    test_closed_forms test_cosine test_devices test_evaluation
    test_hub test_posterior test_prompt test_roads test_saving_networks test_suggest
    test_text test_tool_check
"""
ignored = [f"{name}.py" for name in [*HEAVY.split(), "fixtures/make"]]
collect_ignore = [*ignored, "paper"] if LIGHT else []


def pytest_configure() -> None:
    """A light installation must be one, or its tests would prove nothing."""
    heavy = [name for name in ("torch", "sklearn", "scipy") if importlib.util.find_spec(name)]
    if LIGHT and heavy:
        pytest.exit(f"FRUGALVAE_LIGHT is set, and {', '.join(heavy)} is here", returncode=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """In a light installation, skip what says that it needs more."""
    yield from light(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The same while a test runs."""
    yield from light(item)


def light(_: pytest.Item) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        missing = (
            isinstance(error, MissingPackageError) or (error.name or "").split(".")[0] in EXTRAS
        )
        if not LIGHT or not missing:
            raise
        pytest.skip(str(error))


settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


#: Settings that make any trained part small enough for a test.
SMALL = {"hidden": 16, "latent": 6, "epochs": 20, "max_steps": 60}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def made(memory: str | tuple[str, dict[str, Any]]) -> str | Memory:
    """A memory by name, or one by name and settings, which is made now."""
    return memory if isinstance(memory, str) else make_memory(memory[0], **memory[1])


def small_head(name: str) -> Head:
    """Any head for features of 8 numbers, small enough for a test."""
    settings: dict[str, Any] = {}
    if "width" in parameters_of(HEADS.part(name)):
        settings = {"width": 100}
    if name == "prompt":
        settings = {"model": clip_on_disk(), "optimiser": "lbfgs"}
        settings |= {"epochs": 2, "samples": 32, "passes": 25}
    return make_head(name, **settings)


@pytest.fixture(scope="session")
def clip_folder() -> Path:
    """A small CLIP with both towers, as it is on disk."""
    return Path(clip_on_disk(24))


@pytest.fixture
def features() -> Features:
    train, test = blobs(list(range(6)), seed=1), blobs(list(range(6)), per_class=10, seed=2)
    return Features(
        "blobs",
        train.features,
        train.labels,
        test.features,
        test.labels,
    )


def real_features(name: str) -> Features:
    """A real feature file, or a skip that says where it was looked for."""
    root = Path(os.environ.get("FRUGALVAE_DATA", "data"))
    found = [place for place in (root, root / "features") if (place / f"{name}.npz").exists()]
    if not found:
        pytest.skip(f"{name}.npz is not in {root}; set FRUGALVAE_DATA to where it is")
    return load_features(found[0] / f"{name}.npz")


def load_digits() -> Features:
    """Scikit-learn's digits, between 0 and 1, split 70 to 30."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    split = train_test_split(pixels, labels, test_size=0.3, random_state=0, stratify=labels)
    x_train, x_test = ((x / 16).astype(np.float32) for x in split[:2])
    return Features("digits", x_train, split[2], x_test, split[3])


def parts_of(package: ModuleType, ending: str) -> set[str]:
    """Names of all classes that a package defines and that end so, but for the protocol."""
    found = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith((".base", ".protocols")):
            found |= {
                name
                for name, part in vars(import_module(module.name)).items()
                if inspect.isclass(part) and part.__module__ == module.name
            }
    return {name for name in found if name.endswith(ending)}


def accuracy(truth: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean(truth == prediction))


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> Encoders:
    """Encoders of colours in place of all others, in the commands."""
    made = Encoders()
    monkeypatch.setattr("frugalvae.encoders.make_encoder", made)
    return made


@pytest.fixture
def tool(tmp_path: Path, encoders: Encoders, capsys: pytest.CaptureFixture[str]) -> Tool:
    """A classifier's file that is not there yet."""
    return Tool(tmp_path, capsys)


@pytest.fixture
def taught(tool: Tool) -> Tool:
    """A classifier's file after two tasks, of two classes and one."""
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    tool.learn(paint(tool.folder / "two", "emu"))
    return tool
