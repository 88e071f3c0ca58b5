"""``frugalvae-lab memory``: tell what a memory costs before it is trained."""

from __future__ import annotations

import argparse

from frugalvae.cli.options import add, positive, settings_of
from frugalvae.console import print_json
from frugalvae.parts import MEMORIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Print the parameters and bytes of a memory, by component, before anything is trained."
    )
    parser.add_argument(
        "--memory",
        required=True,
        metavar="NAME",
        help=f"the memory: {', '.join(MEMORIES.names)}, or module:Class",
    )
    parser.add_argument(
        "--classes", type=positive, required=True, metavar="N", help="how many classes"
    )
    parser.add_argument(
        "--tasks",
        type=positive,
        default=10,
        metavar="N",
        help="in how many tasks (default: %(default)s)",
    )
    parser.add_argument(
        "--dim",
        type=positive,
        default=768,
        metavar="N",
        help="the feature dimension (default: %(default)s)",
    )
    parser.add_argument(
        "--samples",
        type=positive,
        metavar="N",
        help="training samples in all; store-all and fetril need it",
    )
    add(parser, "--set", help="change a setting, such as memory.budget=1MB")
    add(parser, "--json")


def run(options: argparse.Namespace) -> None:
    """Print the cost."""
    from frugalvae.parts import make_memory
    from frugalvae.parts.cost import MemoryReport

    memory = make_memory(options.memory, **settings_of(options, "memory")["memory"])
    parts = memory.cost(options.dim, options.classes, options.tasks, options.samples)
    report = MemoryReport(options.memory, options.classes, options.tasks, parts)
    if options.json:
        print_json(report.to_json())
    else:
        print(report)
