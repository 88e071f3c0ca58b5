"""The command line: one function per verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frugalvae import __version__, plugins
from frugalvae.cli.argument_types import (
    on_ray,
    one_seed,
    positive,
    quiet,
    seed,
    settings,
    share,
    task_sizes,
)
from frugalvae.cli.change import add_changes
from frugalvae.cli.completion import add_completion
from frugalvae.cli.evaluate import add_evaluate
from frugalvae.cli.learn import add_learn
from frugalvae.cli.predict import add_predict
from frugalvae.cli.sample import add_sample
from frugalvae.cli.status import add_history, add_status
from frugalvae.encoders import FROZEN, WHICH
from frugalvae.errors import FrugalError
from frugalvae.extras import needing
from frugalvae.heads import HEADS
from frugalvae.images.shards import BATCH_SIZE
from frugalvae.memories import MEMORIES, usual_head

EXIT_CODES = """exit codes:
  0    done
  1    done in part: an input of predict cannot be read, a run of bench failed
  2    not done: the reason is on standard error, and nothing was changed
  130  interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the process's exit code."""
    plugins.FOLDERS[:] = [""]  # the current one: module:Class may be there, as for python -m
    options = parser().parse_args(arguments)
    try:
        with needing(f"frugalvae {options.verb}"):
            code = options.run(options)
        sys.stdout.flush()
    except FrugalError as error:
        print(f"frugalvae: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has left, as ``| head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that may not be written
        print(f"frugalvae: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"frugalvae: interrupted; {options.if_interrupted}", file=sys.stderr)
        return 130
    return int(code or 0)


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(
        prog="frugalvae",
        description="Teach a frozen encoder new classes, task by task, without keeping the data.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"frugalvae {__version__}")
    top.set_defaults(if_interrupted="nothing was written")
    verbs = top.add_subparsers(required=True, dest="verb", metavar="COMMAND")

    add_learn(verbs)
    add_predict(verbs)
    add_evaluate(verbs)
    add_status(verbs)
    add_sample(verbs)
    add_changes(verbs)
    add_history(verbs)
    add_demo(verbs)
    add_encode(verbs)
    add_run(verbs)
    bench = verbs.add_parser("bench", help="tables and figures: run what is missing of them")
    add_bench_run(bench.add_subparsers(required=True, metavar="COMMAND"))
    add_report(verbs)
    add_memory(verbs)
    add_completion(verbs, parser)
    return top


def add_demo(verbs: Any) -> None:
    """The options of ``frugalvae demo``."""
    demo = verbs.add_parser(
        "demo",
        help="teach handwritten digits and write a picture of it",
        parents=[one_seed(), quiet()],
    )
    demo.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("demo.html"),
        metavar="FILE",
        help="the page to write (default: demo.html)",
    )
    demo.add_argument(
        "--picture", type=Path, metavar="FILE", help="also write a still picture (PNG)"
    )
    demo.set_defaults(run=run_demo)


def add_encode(verbs: Any) -> None:
    """The options of ``frugalvae encode``."""
    encode = verbs.add_parser(
        "encode",
        help="make a feature file of images with a frozen encoder",
        description="Encode a folder of images into a feature file. Each folder of images is a "
        "class. Folders train/ and test/ with such folders in them are the two sets; without "
        "them a random quarter of each class, always the same, is the test set. After a kill, "
        "the same command goes on.",
        parents=[
            settings("change a setting of the encoder, such as encoder.size=128"),
            on_ray("task"),
            quiet(),
        ],
    )
    encode.add_argument(
        "images", type=Path, metavar="IMAGES", help="a folder, a zip archive of it, or CIFAR-100"
    )
    encode.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.npz", help="the file to write"
    )
    encode.add_argument(
        "--encoder",
        default="efficientnet",
        metavar="NAME",
        help=f"{', '.join(FROZEN)}; all are frozen (default: efficientnet)",
    )
    encode.add_argument(
        "--model",
        metavar="MODEL",
        help=WHICH,
    )
    encode.add_argument(
        "--batch-size",
        type=positive,
        default=BATCH_SIZE,
        metavar="N",
        help=f"images that the encoder takes at a time (default: {BATCH_SIZE})",
    )
    encode.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="threads that decode images, or tasks on Ray (default: one a core)",
    )
    encode.add_argument(
        "--strict",
        action="store_true",
        help="decode all images first, and refuse if one cannot be read; without it such images "
        "are left out and named",
    )
    encode.set_defaults(
        run=run_encode, if_interrupted="what is encoded is kept, and the same command goes on"
    )


def add_run(verbs: Any) -> None:
    """The options of ``frugalvae run``."""
    run = verbs.add_parser(
        "run",
        help="stream a feature file through a memory and a head",
        description="Split the classes of a feature file into tasks, teach them one after the "
        "other, and write everything that happened as JSON.",
        parents=[
            settings(
                "change a setting, such as memory.budget=300000; a wrong name lists all there are"
            ),
            one_seed(),
            quiet(),
        ],
    )
    run.add_argument(
        "features", type=Path, metavar="FEATURES.npz", help="x_train, y_train, x_test, y_test"
    )
    run.add_argument(
        "--tasks",
        type=task_sizes,
        default=10,
        metavar="N or N,N,...",
        help="number of tasks, or the size of each (default: 10); the seed decides which classes",
    )
    run.add_argument(
        "--memory",
        default="factors",
        metavar="NAME",
        help=f"{', '.join(MEMORIES)}, or module:Class (default: factors)",
    )
    run.add_argument(
        "--head",
        metavar="NAME",
        help=f"{', '.join(HEADS)}, or module:Class (default: what suits the memory: bayes for "
        "factors, cosine for others)",
    )
    run.add_argument(
        "--held-out",
        type=share,
        metavar="PART",
        help="measure on this part of the training samples instead of the test set",
    )
    run.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where the JSON goes (default: DATA-MEMORY-HEAD-seedN.json)",
    )
    run.set_defaults(run=run_features)


def add_memory(verbs: Any) -> None:
    """The options of ``frugalvae memory``."""
    memory = verbs.add_parser("memory", help="what a variant costs, before you train it")
    memory.add_argument(
        "--variant", required=True, metavar="NAME", help=f"{', '.join(MEMORIES)}, or module:Class"
    )
    memory.add_argument("--classes", type=positive, required=True, metavar="N")
    memory.add_argument(
        "--tasks", type=positive, default=10, metavar="N", help="in how many tasks (default: 10)"
    )
    memory.add_argument(
        "--dim", type=positive, default=768, metavar="N", help="width of a feature (default: 768)"
    )
    memory.add_argument(
        "--samples",
        type=positive,
        metavar="N",
        help="training samples in all, for store-all and fetril",
    )
    memory.add_argument("--json", action="store_true", help="for scripts")
    memory.set_defaults(run=run_memory)


def add_bench_run(verbs: Any) -> None:
    """The options of ``frugalvae bench run``."""
    run = verbs.add_parser(
        "run",
        help="run what is missing of some tables",
        description="Run what is missing of the tables and figures that TOML files describe. "
        "Every run is written as it ends; after a kill, the same command goes on.",
        parents=[
            settings("a setting for all rows, such as memory.max_steps=20"),
            on_ray("run"),
            quiet(),
        ],
    )
    run.add_argument("experiments", type=Path, nargs="+", metavar="FILE.toml")
    run.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="NAME[=FILE]",
        help="data to run on: features (.npz), or images for tables that train their encoder; "
        "by default the experiment's own, from the folder FRUGALVAE_DATA",
    )
    run.add_argument(
        "--seeds", type=seed, nargs="+", metavar="N", help="in place of the experiment's own"
    )
    run.add_argument(
        "-o",
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="where results are kept (default: results)",
    )
    run.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes, of one thread each (default: one a core)",
    )
    run.add_argument(
        "--plan", action="store_true", help="say which runs are missing, and run nothing"
    )
    run.set_defaults(
        run=run_bench, if_interrupted="finished runs are kept, and the same command goes on"
    )


def add_report(verbs: Any) -> None:
    """The options of ``frugalvae report``."""
    report = verbs.add_parser(
        "report",
        help="tables and figures of a results folder, as a page",
        description="Write what 'bench run' measured: tables beside the paper's, figures, and "
        "every run. What is missing or failed is said.",
    )
    report.add_argument("results", type=Path, metavar="RESULTS", help="folder of 'bench run'")
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="what to write: .html, .md, .tex or .csv (default: report.html)",
    )
    report.add_argument(
        "--format",
        choices=("html", "md", "latex", "csv"),
        help="in place of the one that the file's ending stands for",
    )
    report.set_defaults(run=run_report)


def run_report(options: argparse.Namespace) -> None:
    """``frugalvae report``."""
    from frugalvae.report.write import write_report

    print(write_report(options.results, options.output, options.format))


def run_bench(options: argparse.Namespace) -> int:
    """``frugalvae bench run``: 1 if a run failed."""
    from frugalvae.bench.grid_run import run_grid
    from frugalvae.bench.pool import Pool, ProcessPool

    def make_pool() -> Pool:
        if options.ray or options.ray_address:
            from frugalvae.bench.ray_pool import RayPool

            return RayPool(options.ray_address, jobs=options.jobs, gpus=options.gpus)
        return ProcessPool(options.jobs)

    failed = run_grid(
        options.experiments,
        make_pool,
        data=options.data,
        seeds=options.seeds,
        changes=options.set,
        results=options.results,
        plan=options.plan,
        quiet=options.quiet,
    )
    return 1 if failed else 0


def run_demo(options: argparse.Namespace) -> None:
    """``frugalvae demo``."""
    from frugalvae.cli.demo import demo

    demo(options.output, seed=options.seed, quiet=options.quiet, picture=options.picture)


def run_encode(options: argparse.Namespace) -> None:
    """``frugalvae encode``."""
    from frugalvae.cli.encode import run_encode as encode

    encode(
        options.images,
        options.output,
        encoder=options.encoder,
        model=options.model,
        changes=options.set,
        batch_size=options.batch_size,
        jobs=options.jobs,
        strict=options.strict,
        ray=options.ray,
        ray_address=options.ray_address,
        gpus=options.gpus,
        quiet=options.quiet,
    )


def run_features(options: argparse.Namespace) -> None:
    """``frugalvae run``."""
    from frugalvae.cli.run import run_features as stream

    settings: dict[str, dict[str, Any]] = {"memory": {}, "head": {}}
    for part, name, value in options.set:
        settings[part][name] = value
    stream(
        options.features,
        tasks=options.tasks,
        memory=options.memory,
        head=options.head or usual_head(options.memory),
        settings=settings,
        seed=options.seed,
        held_out=options.held_out,
        output=options.output,
        quiet=options.quiet,
    )


def run_memory(options: argparse.Namespace) -> None:
    """``frugalvae memory``."""
    import json

    from frugalvae.cost import MemoryReport
    from frugalvae.memories import make_memory

    memory = make_memory(options.variant)
    parts = memory.cost(options.dim, options.classes, options.tasks, options.samples)
    report = MemoryReport(options.variant, options.classes, options.tasks, parts)
    if options.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        print(report)
