"""What every frozen encoder must do. Discovered: a new one is tested by being there."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from frugalvae.encoders import ENCODERS, make_encoder
from frugalvae.testing.encoders import ENCODER_CHECKS
from frugalvae.testing.rules import Rule


@pytest.fixture(scope="module")
def clip_onnx(clip_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.small_onnx import export_clip

    return export_clip(clip_folder, tmp_path_factory.mktemp("clip") / "exported")


@pytest.mark.parametrize("rule", ENCODER_CHECKS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_encoder_keeps_every_rule(
    name: str, rule: Rule, request: pytest.FixtureRequest
) -> None:
    if name == "efficientnet":
        rule(partial(make_encoder, name, size=64))
    else:
        folder = request.getfixturevalue("clip_onnx" if name == "onnx" else "clip_folder")
        rule(partial(make_encoder, name, model=folder))
