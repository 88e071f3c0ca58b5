"""``frugalvae completion``: what a shell needs to complete commands, made from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

BASH = """\
# frugalvae completion bash >> ~/.bashrc
_frugalvae() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="" word words=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$command $word" in
            {commands}) command="$command $word" ;;
        esac
    done
    case "$command $previous" in
{choices}
    esac
    case "$command" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ "$current" == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _frugalvae frugalvae
"""

ZSH = """\
#compdef frugalvae
# frugalvae completion zsh > ~/.zfunc/_frugalvae, and fpath+=~/.zfunc before compinit
_frugalvae() {{
    local command="" word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$command $word" in
            {commands}) command="$command $word" ;;
        esac
    done
    case "$command" in
{cases}
    esac
}}
compdef _frugalvae frugalvae
"""


@dataclass(frozen=True)
class Option:
    """An option: how it is written, what it takes, and what it is for."""

    names: list[str]
    takes: bool
    choices: list[str]
    about: str


@dataclass(frozen=True)
class Command:
    """A command, by the words that lead to it; a list of those below it."""

    path: tuple[str, ...]
    about: str
    options: list[Option]
    below: list[str]
    choices: list[str]

    @property
    def key(self) -> str:
        """Its words, each after a space: the program itself is nothing."""
        return "".join(f" {word}" for word in self.path)

    @property
    def words(self) -> list[str]:
        """All that may be typed next, but for files."""
        names = [name for option in self.options for name in option.names]
        return [*self.below, *self.choices, *names]


def add_completion(verbs: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """The options of ``frugalvae completion``; ``parser`` makes the one that is described."""
    completion = verbs.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description="Print a script that completes commands, options and files. Its first lines "
        "say where it goes. For the running bash: source <(frugalvae completion bash)",
    )
    completion.add_argument("shell", choices=list(SHELLS))
    completion.set_defaults(run=lambda options: print(SHELLS[options.shell](parser()), end=""))


def commands_of(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = (), about: str = ""
) -> Iterator[Command]:
    """A parser's command, and all below it."""
    below: dict[str, tuple[argparse.ArgumentParser, str]] = {}
    options, choices = [], list[str]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {entry.dest: entry.help or "" for entry in action._choices_actions}
            below = {name: (made, told.get(name, "")) for name, made in action.choices.items()}
        elif action.option_strings:
            options.append(_option(action))
        else:
            choices += map(str, action.choices or [])
    yield Command(path, about, options, list(below), choices)
    for name, (made, told_of_it) in below.items():
        yield from commands_of(made, (*path, name), told_of_it)


def _option(action: argparse.Action) -> Option:
    about = " ".join((action.help or "").split()).replace("%%", "%")
    choices = [str(choice) for choice in action.choices or []]
    return Option(list(action.option_strings), action.nargs != 0, choices, about)


def bash(parser: argparse.ArgumentParser) -> str:
    """A script for bash."""
    commands = list(commands_of(parser))
    choices = [
        f'        "{command.key} {name}") '
        f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current")); return ;;'
        for command in commands
        for option in command.options
        for name in option.names
        if option.choices
    ]
    words = [f'        "{c.key}") words="{" ".join(c.words)}" ;;' for c in commands]
    return BASH.format(
        commands=_either(commands), choices="\n".join(choices), words="\n".join(words)
    )


def zsh(parser: argparse.ArgumentParser) -> str:
    """A script for zsh."""
    commands = list(commands_of(parser))
    about = {command.path: command.about for command in commands}
    cases = []
    for command in commands:
        arguments = [
            _zsh_option(name, option) for option in command.options for name in option.names
        ]
        listed = [f"{name}\\:{_plain(about[(*command.path, name)])}" for name in command.below]
        inside = " ".join(map(shlex.quote, listed)) or " ".join(command.choices)
        arguments.append(f"*:argument:(({inside}))" if listed else "*:file:_files")
        quoted = " ".join(map(shlex.quote, arguments))
        cases.append(f'        "{command.key}") _arguments {quoted} ;;')
    return ZSH.format(commands=_either(commands), cases="\n".join(cases))


def _zsh_option(name: str, option: Option) -> str:
    takes = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return f"{name}[{_plain(option.about)}]" + (takes if option.takes else "")


def _plain(text: str) -> str:
    """Without what zsh would take for its own."""
    return text.translate(str.maketrans("", "", "[]:'\"()`$\\"))


def fish(parser: argparse.ArgumentParser) -> str:
    """A script for fish."""
    lines = ["# frugalvae completion fish > ~/.config/fish/completions/frugalvae.fish"]
    commands = list(commands_of(parser))
    about = {command.path: command.about for command in commands}
    for command in commands:
        seen = "".join(f"__fish_seen_subcommand_from {word}; and " for word in command.path)
        unseen = f"not __fish_seen_subcommand_from {' '.join(command.below)}"
        where = seen + unseen if command.below else seen.removesuffix("; and ")
        start = f"complete -c frugalvae -n {shlex.quote(where)}"
        for name in command.below:
            lines.append(f"{start} -f -a {name} -d {shlex.quote(about[(*command.path, name)])}")
        if command.choices:
            lines.append(f"{start} -f -a {shlex.quote(' '.join(command.choices))}")
        lines += [_fish_option(start, option) for option in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(start: str, option: Option) -> str:
    words = [start]
    for name in option.names:
        words.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if option.choices:
        words.append(f"-x -a {shlex.quote(' '.join(option.choices))}")
    elif option.takes:
        words.append("-r")
    return " ".join([*words, "-d", shlex.quote(option.about)])


def _either(commands: list[Command]) -> str:
    return "|".join(f'"{command.key}"' for command in commands if command.path)


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
