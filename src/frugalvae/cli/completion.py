"""``frugalvae completion``: print a script that completes commands in a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

#: Where the script of each shell goes.
PLACES = {
    "bash": "frugalvae completion bash > ~/.local/share/bash-completion/completions/frugalvae",
    "zsh": "frugalvae completion zsh > ~/.zfunc/_frugalvae, with fpath+=~/.zfunc before compinit",
    "fish": "frugalvae completion fish > ~/.config/fish/completions/frugalvae.fish",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    places = "\n".join(f"  {place}" for place in PLACES.values())
    parser.description = (
        f"Print a script that completes commands, options and files. Where it goes:\n\n{places}"
    )
    parser.add_argument("shell", choices=list(PLACES), help="the shell that you use")


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    from frugalvae.cli.main import parser

    described = parser()
    offer(described)
    print(shtab.complete(described, options.shell))


def offer(parser: argparse.ArgumentParser) -> None:
    """Say what the values of options may be: files, or names of parts."""
    import shtab

    from frugalvae.encoders import ENCODERS
    from frugalvae.parts import HEADS, MEMORIES

    names = {"memory": MEMORIES, "head": HEADS, "encoder": ENCODERS}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                offer(below)
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in names:
            action.choices = list(names[action.dest])
