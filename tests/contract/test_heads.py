"""What every head must do. Heads are discovered: a new one is tested by being there."""

from __future__ import annotations

from functools import partial

import pytest

from frugalvae import paper, parts
from frugalvae.errors import InputError
from frugalvae.parts import HEADS, MEMORIES, make_head
from frugalvae.parts.registry import Registry, parameters_of
from frugalvae.testing.heads import HEAD_CHECKS
from frugalvae.testing.rules import Rule
from tests.conftest import parts_of, small_head


def test_every_head_class_of_the_package_has_a_name() -> None:
    found = parts_of(parts, "Head") | parts_of(paper, "Head")
    assert found == {type(make_head(name)).__name__ for name in HEADS}


@pytest.mark.parametrize("registry", [MEMORIES, HEADS], ids=["memories", "heads"])
def test_no_whole_number_among_the_settings_is_without_bounds(registry: Registry) -> None:
    """Or a file could ask for all memory, or for a year of training."""
    for name in registry.names:
        for setting, parameter in parameters_of(registry.part(name)).items():
            counts = type(parameter.default) is int or setting == "budget"
            if counts and setting not in registry[name]:
                with pytest.raises(InputError, match=f"{setting} is {2**60}; .*, from . to "):
                    registry.make(name, {setting: 2**60})


@pytest.mark.parametrize("rule", HEAD_CHECKS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", HEADS.names)
def test_every_head_keeps_every_rule(name: str, rule: Rule) -> None:
    rule(partial(small_head, name))
