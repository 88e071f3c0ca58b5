"""``frugalvae-lab bench run``: run the experiments of tables and figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import add, add_ray, from_zero

if TYPE_CHECKING:
    from frugalvae_lab.bench.pool import Pool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Experiments that are described in TOML files; see lab/docs/experiments.md."
    )
    verbs = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    run = verbs.add_parser(
        "run",
        formatter_class=parser.formatter_class,
        help="run what is missing of some experiments",
        description="Run what is missing of the tables and figures that TOML files describe. "
        "Every run is written as it ends; after a kill, the same command goes on.",
    )
    run.add_argument(
        "experiments", type=Path, nargs="+", metavar="FILE.toml", help="experiments to run"
    )
    run.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="NAME[=FILE]",
        help="data to run on: features (.npz), or images for experiments that train their "
        "encoder (default: what the experiment names, from the folder FRUGALVAE_DATA)",
    )
    run.add_argument("--seeds", type=from_zero, nargs="+", metavar="N", help="seeds to run instead")
    run.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="rows to run now")
    about = "columns to run now, by the names of their protocols"
    run.add_argument("--protocols", nargs="+", default=[], metavar="NAME", help=about)
    run.add_argument("--again", action="store_true", help="run what is done, too")
    add(run, "--set", help="change a setting in all rows, such as memory.max_steps=20")
    about = "import this module, or module:Class, if the files name it; may be given again"
    add(run, "--trust", help=about)
    run.add_argument(
        "-o",
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="where results are kept (default: %(default)s)",
    )
    about = "how many processes, of one thread each (default: one per core)"
    add(run, "--jobs", help=about)
    run.add_argument(
        "--plan", action="store_true", help="list the runs that are missing, and run nothing"
    )
    add_ray(run, "run")
    add(run, "--quiet")
    run.set_defaults(if_interrupted="finished runs are kept, and the same command goes on")


def run(options: argparse.Namespace) -> int:
    """Run what is missing; 1 if a run failed."""
    from frugalvae_lab.bench.grid import Only
    from frugalvae_lab.bench.grid_run import run_grid
    from frugalvae_lab.bench.pool import ProcessPool

    def make_pool() -> Pool:
        if options.ray or options.ray_address:
            from frugalvae_lab.bench.pool import RayPool

            return RayPool(options.ray_address, jobs=options.jobs, gpus=options.gpus)
        return ProcessPool(options.jobs)

    failed = run_grid(
        options.experiments,
        make_pool,
        data=options.data,
        seeds=options.seeds,
        changes=options.set,
        trust=tuple(options.trust),
        results=options.results,
        only=Only(options.rows, options.protocols),
        again=options.again,
        plan=options.plan,
        quiet=options.quiet,
    )
    return 1 if failed else 0
