"""The command line of the laboratory."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from frugalvae import __version__
from frugalvae.cli.main import Help
from frugalvae.console import complain
from frugalvae.errors import FrugalError, needing
from frugalvae.parts import registry

#: Every verb, and what ``frugalvae-lab --help`` says of it.
VERBS = {
    "run": "teach a feature file task by task, and measure",
    "bench": "run the experiments of tables and figures",
    "report": "write tables and figures of measured experiments",
    "memory": "tell what a memory costs before it is trained",
    "demo": "teach handwritten digits, and write a page about it",
}

EPILOG = """exit codes:
  0    done
  1    done in part: a run of bench failed
  2    not done: the reason is on standard error, and nothing was changed
  130  interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the process's exit code."""
    registry.FOLDERS[:] = [""]  # the current one: module:Class may be there, as for python -m
    options = parser().parse_args(arguments)
    try:
        with needing(f"frugalvae-lab {options.verb}"):
            return int(options.run(options) or 0)
    except (FrugalError, OSError) as error:  # such as a full disk
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        complain(f"interrupted; {options.if_interrupted}")
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="frugalvae-lab",
        description="Compare memories and heads, and make every table and figure.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"frugalvae {__version__}")
    top.set_defaults(if_interrupted="nothing was written")
    commands = top.add_subparsers(required=True, dest="verb", metavar="COMMAND", title="commands")
    for verb, about in VERBS.items():
        made = commands.add_parser(verb, help=about, formatter_class=Help)
        module = import_module(f"frugalvae_lab.cli.{verb}")
        made.set_defaults(run=module.run)
        module.add_arguments(made)
    return top
