from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from frugalvae.data.catalogue import data_folder, in_data_folder
from frugalvae.data.features import Features, load_features
from frugalvae.heads import make_head
from frugalvae.heads.base import Head
from frugalvae.tasks import Task
from tests.small_clip import clip_on_disk
from tests.tool import Encoders, Tool

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

#: Settings that make any trained part small enough for a test.
SMALL = {"hidden": 16, "latent": 6, "epochs": 20, "max_steps": 60}


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def blobs(
    classes: list[int], per_class: int = 20, dim: int = 8, seed: int = 0, spread: float = 0.3
) -> Task:
    """Well separated classes: class ``c`` has a centre of its own, whatever the task."""
    rng = torch.Generator().manual_seed(seed + 1000)
    x = []
    for label in classes:
        centre = torch.randn(dim, generator=torch.Generator().manual_seed(label)) * 3
        x.append(centre + spread * torch.randn(per_class, dim, generator=rng))
    return Task(
        torch.cat(x),
        torch.tensor(classes).repeat_interleave(per_class),
        names={label: f"class {label}" for label in classes},
    )


def small_head(name: str) -> Head:
    """Any head for features of 8 numbers, small enough for a test."""
    settings: dict[str, Any] = {}
    if name == "ranpac":
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
        train.features.numpy(),
        train.labels.numpy(),
        test.features.numpy(),
        test.labels.numpy(),
    )


def real_features(name: str) -> Features:
    """A real feature file, or a skip that says where it was looked for."""
    found = in_data_folder(f"{name}.npz")
    if not found:
        pytest.skip(f"{name}.npz is not in {data_folder()}; set FRUGALVAE_DATA to where it is")
    return load_features(found[0])


def parts_of(package: ModuleType, ending: str) -> set[str]:
    """Names of all classes that a package defines and that end so, but for the protocol."""
    found = set()
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".base"):
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
    monkeypatch.setattr("frugalvae.tool.encoder.make_frozen", made)
    return made


@pytest.fixture
def tool(tmp_path: Path, encoders: Encoders, capsys: pytest.CaptureFixture[str]) -> Tool:
    """A classifier's file that is not there yet."""
    return Tool(tmp_path, capsys)
