"""What the command line says of itself: help, and completion in shells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from frugalvae.cli.main import VERBS, main
from frugalvae.encoders import ENCODERS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_for_all_that_may_be_typed(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: frugalvae {verb}")
    _usage, description, *sections = said.split("\n\n")
    assert description[0].isupper()
    assert sections


def test_a_verb_imports_no_other_verb() -> None:
    script = "import sys; from frugalvae.cli.main import main\n"
    script += "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    script += "print(*sorted(name for name in sys.modules if name.startswith('frugalvae.cli.')))"
    for words, modules in (
        (["--help"], set[str]()),
        (["predict", "--help"], {"predict", "options"}),
        (["undo", "x.frugal", "--help"], {"changes", "options"}),
    ):
        ended = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
        )
        found = {name.rpartition(".")[2] for name in ended.stdout.splitlines()[-1].split()}
        assert found - {"main"} == modules


def test_help_and_import_stay_light() -> None:
    """Neither may import PyTorch: that alone takes longer than help may take in all."""
    code = (
        "import contextlib, sys, frugalvae, frugalvae.cli.main\n"
        "for words in ['--help'], ['learn', '--help']:\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        frugalvae.cli.main.main(words)\n"
        "heavy = {'torch', 'sklearn', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_verb_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["predcit", "x.frugal"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "there is no command 'predcit'. Did you mean 'predict'?" in said
    assert said.endswith("'frugalvae --help' lists all\n")
    with pytest.raises(SystemExit):
        main(["xyz"])
    assert "Did you mean" not in capsys.readouterr().err


# --------------------------------------------------------------------------- completion


@pytest.fixture(scope="module")
def script() -> str:
    command = [sys.executable, "-m", "frugalvae", "completion", "bash"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(script: str, *words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    asking = (
        'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_frugalvae frugalvae "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(
        ["bash", "-c", asking, "/dev/stdin", "frugalvae", *words],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,  # for files to be found
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pre", ["predict"]),
        ("", list(VERBS)),
        ("learn x.frugal --enc", ["--encoder"]),
        ("learn x.frugal y --encoder ", list(ENCODERS)),
        ("learn x.frugal y --memory mom", ["moments"]),
        ("predict fixt", ["fixtures"]),
        ("predict x.frugal a.jpg fixt", ["fixtures"]),
        ("completion z", ["zsh"]),
    ],
)
def test_bash_completes_commands_options_choices_and_files(
    script: str, typed: str, offered: list[str]
) -> None:
    assert completed(script, *typed.split(" ")) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_every_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    words = [*VERBS, "min-probability", "case-matters", "ray-address", "gaussian-diagonal"]
    assert [word for word in words if word not in script] == []


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 0
    assert "teach classes from a folder of images" in capsys.readouterr().out
