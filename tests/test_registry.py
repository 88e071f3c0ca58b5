from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction

import pytest

from frugalvae.errors import (
    FrugalError,
    InputError,
    KnownClassError,
    UnknownClassError,
    suggestion,
)
from frugalvae.parts import HEADS, MEMORIES
from frugalvae.parts.registry import Registry

PARTS = Registry(
    "fraction",
    {
        "half": ("fractions:Fraction", {"denominator": 2}),
        "whole": ("fractions:Fraction", {}),
        "nowhere": ("there.is.no:module", {}),
    },
)


# --------------------------------------------------------------------------- making


def test_part_is_made_with_its_own_settings() -> None:
    assert PARTS.make("half", {"numerator": 3}) == Fraction(3, 2)


def test_what_makes_a_part_what_it_is_cannot_be_changed() -> None:
    """Or a full Gaussian would go by the name of a diagonal one."""
    assert PARTS.make("half", {"numerator": 3, "denominator": 2}) == Fraction(3, 2)
    with pytest.raises(InputError, match="'half' is made by denominator=2, .* be changed to 4"):
        PARTS.make("half", {"numerator": 3, "denominator": 4})


def test_making_a_part_does_not_change_what_the_next_one_gets() -> None:
    PARTS.make("half", {"numerator": 3})
    assert PARTS["half"] == {"denominator": 2}


def test_part_is_imported_only_when_made() -> None:
    assert PARTS["nowhere"] == {}
    with pytest.raises(ModuleNotFoundError):
        PARTS.make("nowhere", {})


def test_unknown_name_is_answered_with_the_nearest_and_all_names() -> None:
    message = "there is no fraction 'hafl'. Did you mean 'half'? Known: half, whole, nowhere"
    for attempt in (lambda: PARTS["hafl"], lambda: PARTS.make("hafl", {})):
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            attempt()


def test_unknown_name_near_nothing_gets_no_suggestion() -> None:
    with pytest.raises(InputError, match=r"^there is no fraction 'zebra'\. Known: half, whole"):
        PARTS["zebra"]


def test_unknown_setting_is_answered_with_the_nearest_and_all_settings() -> None:
    with pytest.raises(InputError) as caught:
        PARTS.make("half", {"numerater": 1})
    message = str(caught.value)
    expected = "fraction 'half' has no setting 'numerater'. Did you mean 'numerator'? Known: "
    assert message.startswith(expected)
    assert "denominator" in message.removeprefix(expected)


def test_part_without_settings_says_that_it_has_none() -> None:
    parts = Registry("object", {"bare": ("frugalvae.parts.store_all:NoMemory", {})})
    with pytest.raises(InputError, match=r"object 'bare' has no setting 'scale'\. Known: none$"):
        parts.make("bare", {"scale": 1})


# --------------------------------------------------------------------------- a mapping


def test_registry_is_a_mapping_in_the_order_given() -> None:
    assert list(PARTS) == ["half", "whole", "nowhere"]
    assert len(PARTS) == 3
    assert dict(PARTS) == {"half": {"denominator": 2}, "whole": {}, "nowhere": {}}


def test_membership_is_asked_without_an_error() -> None:
    assert "half" in PARTS
    assert "hafl" not in PARTS
    assert 3 not in PARTS


def test_get_gives_the_default_for_an_unknown_name() -> None:
    """As every Mapping does; it relies on the error being a KeyError."""
    assert PARTS.get("half") == {"denominator": 2}
    assert PARTS.get("hafl") is None


# --------------------------------------------------------------------------- memories and heads


def test_listing_all_parts_needs_no_pytorch() -> None:
    program = (
        "import sys; from frugalvae.parts import MEMORIES; from frugalvae.parts import HEADS; "
        "assert list(MEMORIES) and list(HEADS); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("registry", [MEMORIES, HEADS], ids=["memories", "heads"])
def test_misspelt_part_is_refused_by_its_kind(registry: Registry) -> None:
    name = next(iter(registry))
    with pytest.raises(InputError, match=f"no {registry.kind} .*Did you mean {name!r}"):
        registry.make(name + "x", {})


# --------------------------------------------------------------------------- errors


def test_suggestion_keeps_the_type_of_what_is_known() -> None:
    assert suggestion("11", [1, 110]) == " Did you mean 110?"
    assert suggestion("vae-f0", ["store-all", "vae-fo"]) == " Did you mean 'vae-fo'?"


def test_nothing_near_means_no_suggestion() -> None:
    assert suggestion("zebra", ["vae-fo"]) == ""
    assert suggestion("zebra", []) == ""


def test_unknown_class_error_is_a_key_error_that_prints_without_quotes() -> None:
    error = UnknownClassError("class 'dax' was never taught")
    assert isinstance(error, KeyError)
    assert str(error) == "class 'dax' was never taught"


@pytest.mark.parametrize("kind", [InputError, KnownClassError, UnknownClassError])
def test_errors_can_be_caught_as_ours_or_as_value_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, FrugalError)
    assert issubclass(kind, ValueError)
