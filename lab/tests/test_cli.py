"""The command ``frugalvae-lab``: its help, and what ends it."""

from __future__ import annotations

import pytest

from frugalvae_lab.cli import VERBS, main


@pytest.mark.parametrize("verb", [*VERBS, "bench run"])
def test_every_verb_has_help_for_all_that_may_be_typed(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*verb.split(), "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: frugalvae-lab {verb}")
    _usage, description, *sections = said.split("\n\n")
    assert description[0].isupper()
    assert sections


def test_parts_of_the_laboratory_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["memory", "--help"])
    listed = " ".join(capsys.readouterr().out.split())
    assert "store-all, none, factors, fetril, mixture" in listed


def test_a_command_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["learn", "x.frugal"])
    assert ended.value.code == 2
    assert "invalid choice: 'learn' (choose from" in capsys.readouterr().err
