"""The command line: find the verb that was typed, and run it."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from frugalvae import __version__
from frugalvae.console import print_error
from frugalvae.errors import LABORATORY_COMES_BY, FrugalError, needing, suggestion
from frugalvae.parts import registry

PIPE_CLOSED = 141  # as of a program that is ended by the signal SIGPIPE

#: Every verb, and what ``frugalvae --help`` says of it. A verb is a module of this package with
#: ``add_arguments(parser)`` and ``run(options)``, whose docstring is the verb's own help; it is
#: imported when it is typed.
VERBS = {
    "check": "look for mistakes in a folder of images before learning it",
    "learn": "teach classes from a folder of images, or more images of one class",
    "predict": "classify images",
    "explain": "show which parts of an image support its predicted class",
    "serve": "use and teach a classifier in the browser, or over HTTP",
    "evaluate": "test a classifier on labelled images, and write a page about it",
    "status": "show what a classifier knows, its size, and warnings",
    "suggest": "suggest which unlabelled images to label next",
    "rename": "give a class another name",
    "merge": "add the classes and samples of other classifiers",
    "merge-classes": "make one class of several",
    "unlearn": "remove single images from a class",
    "forget": "remove a class",
    "undo": "revert the last change",
    "history": "list what was done to a classifier, and when",
    "sample": "draw features of a class from the memory",
    "encode": "turn images into a feature file",
    "completion": "print a script that completes commands in a shell",
}

#: Verbs that are two functions of the module ``changes`` each, such as ``add_undo`` and ``undo``.
CHANGES = ("rename", "merge", "merge-classes", "unlearn", "forget", "undo", "history")

#: Verbs of the command ``frugalvae-lab``.
LABORATORY = ("run", "bench", "report", "memory", "demo")

EPILOG = """'frugalvae COMMAND --help' lists the options of a command.

exit codes:
  0    done
  1    partly done: an input of predict cannot be read
  2    not done: the reason is on standard error, and nothing was changed
  130  interrupted
  141  the reader of the output closed the pipe
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the process's exit code."""
    if arguments is None:
        gc.set_threshold(100_000)  # importing makes much, and none of it is garbage
        arguments = sys.argv[1:]
        if isinstance(sys.stdout, io.TextIOWrapper):  # letters that it lacks become escapes
            sys.stdout.reconfigure(errors="backslashreplace")
    if not arguments:
        arguments = ["--help"]
    registry.FOLDERS[:] = [""]  # the current one: module:Class may be there, as for python -m
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if verb in arguments[:1] and verb not in VERBS:
        near = suggestion(verb, VERBS)
        if verb in LABORATORY:
            near = f" It is 'frugalvae-lab {verb}': {LABORATORY_COMES_BY}."
        parser("").error(f"there is no command {verb!r}.{near} 'frugalvae --help' lists all")
    known = (verb,) if verb in arguments[:1] else ()
    options, rest = parser(verb, only=known).parse_known_args(arguments)
    if rest and not take_late_folder(options, rest):
        parser(verb).error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        with needing(f"frugalvae {options.verb}"):
            code = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has left, as ``| head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (FrugalError, OSError) as error:  # such as a full disk
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        print_error(f"interrupted; {options.if_interrupted}")
        return 130
    return int(code or 0)


def take_late_folder(options: argparse.Namespace, rest: list[str]) -> bool:
    """Whether what argparse left over is the folder of 'learn' or 'check', behind options.

    Before Python 3.13, argparse takes an optional path that stands there for one too many.

    >>> options = argparse.Namespace(file=None, source=Path("birds.frugal"))
    >>> take_late_folder(options, ["photos/"]), str(options.file), str(options.source)
    (True, 'birds.frugal', 'photos')
    """
    if rest[0].startswith("-") or not hasattr(options, "source"):
        return False
    if isinstance(options.source, list):
        options.source += map(Path, rest)
        return not any(word.startswith("-") for word in rest)
    if len(rest) != 1:
        return False
    if options.source is None:
        options.source = Path(rest[0])
    elif options.file is None:
        options.file, options.source = options.source, Path(rest[0])
    else:
        return False
    return True


class Help(argparse.HelpFormatter):
    """Help that does not break names such as ``vae-fo`` at their hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def parser(*verbs: str, only: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The command line; only the verbs that are named, or else all, have their options yet.

    It knows all verbs, or ``only`` some.
    """
    top = argparse.ArgumentParser(
        prog="frugalvae",
        description="Teach a classifier new classes, from folders of images that it does not keep.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"frugalvae {__version__}")
    top.set_defaults(if_interrupted="nothing was written")
    commands = top.add_subparsers(
        required=True, dest="verb", metavar="COMMAND", title="commands", prog="frugalvae"
    )
    for verb in only or VERBS:
        made = commands.add_parser(verb, help=VERBS[verb], formatter_class=Help)
        if verb in (verbs or VERBS):
            name, changes = verb.replace("-", "_"), verb in CHANGES
            module = import_module(f"frugalvae.cli.{'changes' if changes else name}")
            run = getattr(module, name if changes else "run")
            made.description = run.__doc__
            made.set_defaults(run=run)
            getattr(module, f"add_{name}" if changes else "add_arguments")(made)
    return top
