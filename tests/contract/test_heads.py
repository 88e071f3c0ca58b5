"""What every head must do. Heads are discovered: a new one is tested by being there."""

from __future__ import annotations

from functools import partial

import pytest

from frugalvae import heads
from frugalvae.heads import HEADS, make_head
from frugalvae.testing.heads import HEAD_CHECKS
from frugalvae.testing.rules import Rule
from tests.conftest import parts_of, small_head


def test_every_head_class_of_the_package_has_a_name() -> None:
    assert parts_of(heads, "Head") == {type(make_head(name)).__name__ for name in HEADS}


@pytest.mark.parametrize("rule", HEAD_CHECKS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", list(HEADS))
def test_every_head_keeps_every_rule(name: str, rule: Rule) -> None:
    rule(partial(small_head, name))
