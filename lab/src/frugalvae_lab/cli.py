"""The command ``frugalvae-lab``: its verbs and their options. What they do is imported when run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae import __version__
from frugalvae.cli.main import Help
from frugalvae.cli.options import (
    add,
    add_ray,
    check_output,
    from_zero,
    positive,
    settings_of,
    share,
)
from frugalvae.console import Display, print_error, print_json
from frugalvae.errors import FrugalError, needing
from frugalvae.files import write_json
from frugalvae.formatting import count, plural
from frugalvae.parts import MEMORIES, make_head, make_memory, registry, usual_head

if TYPE_CHECKING:
    from frugalvae.classifier import FrugalClassifier
    from frugalvae_lab.bench.pool import Pool
    from frugalvae_lab.bench.run import Record

TASKS = 10  # the usual number

EPILOG = """exit codes:
  0    done
  1    done in part: a run of bench failed
  2    not done: the reason is on standard error, and nothing was changed
  130  interrupted
"""


def task_sizes(text: str) -> int | list[int]:
    """``10``, or ``50,10,10``."""
    numbers = [positive(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the process's exit code."""
    registry.FOLDERS[:] = [""]  # the current one: module:Class may be there, as for python -m
    options = parser().parse_args(arguments)
    try:
        with needing(f"frugalvae-lab {options.verb}"):
            return int(options.run(options) or 0)
    except (FrugalError, OSError) as error:  # such as a full disk
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        print_error(f"interrupted; {options.if_interrupted}")
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
    for verb, (about, description, add_arguments, run) in VERBS.items():
        made = commands.add_parser(verb, help=about, description=description, formatter_class=Help)
        made.set_defaults(run=run)
        add_arguments(made)
    return top


# --------------------------------------------------------------------------- run


def run_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``run``."""
    about = "x_train, y_train, x_test, y_test"
    parser.add_argument("features", type=Path, metavar="FEATURES.npz", help=about)
    about = "how many tasks, or the size of each (default: 10); the seed shuffles the classes"
    parser.add_argument(
        "--tasks", type=task_sizes, default=TASKS, metavar="N or N,N,...", help=about
    )
    add(parser, "--memory", default="moments")
    add(parser, "--head")
    about = "change a setting of the memory or the head, such as memory.budget=300000; a wrong name"
    add(parser, "--set", help=f"{about} lists all of them")
    add(parser, "--seed")
    about = "measure on this share of the training samples instead of the test set"
    parser.add_argument("--held-out", type=share, metavar="SHARE", help=about)
    about = "the record to write (default: FEATURES-MEMORY-HEAD-seedN.json)"
    add(parser, "--output", help=about)
    add(parser, "--quiet")


def run_run(options: argparse.Namespace) -> None:
    """Teach the file, show how it goes, and write the record."""
    from frugalvae.classifier import FrugalClassifier
    from frugalvae.images.feature_file import load_features
    from frugalvae.parts.registry import settings_of as all_settings
    from frugalvae_lab.bench.run import run_stream

    path, tasks, memory, seed = options.features, options.tasks, options.memory, options.seed
    head = options.head or usual_head(memory)
    settings = settings_of(options, "memory", "head")
    classifier = FrugalClassifier(
        make_memory(memory, **settings["memory"]),
        make_head(head, **settings["head"]),
        random_state=seed,
    )
    changed = [f"{part}.{key}={value}" for part, key, value in options.set]
    if tasks != TASKS:
        changed.append(f"tasks{tasks if isinstance(tasks, int) else '+'.join(map(str, tasks))}")
    changed += [f"held-out{options.held_out}"] if options.held_out is not None else []
    default = "-".join([path.stem, memory, head, *changed, f"seed{seed}.json"])
    output = options.output or Path(default.replace(":", "."))  # no colon in a file's name
    check_output(output, ".json")
    features = load_features(path)
    if options.held_out is not None:
        features = features.held_out(options.held_out, seed=0)
    display = Display(options.quiet)
    number = tasks if isinstance(tasks, int) else len(tasks)
    display.say(
        f"{features.name}: {plural(len(features.classes), 'class')} in {plural(number, 'task')}, "
        f"{len(features.x_train):,} training and {len(features.x_test):,} test samples of "
        f"dimension {features.x_train.shape[1]}"
    )

    def after_task(classifier: FrugalClassifier, record: Record) -> None:
        display.step()
        display.say(describe_task(classifier, record))

    made = {
        "memory": {"name": memory, **all_settings(classifier.memory)},
        "head": {"name": head, **all_settings(classifier.head)},
        "held_out": options.held_out,
    }
    with display.working(f"{memory} + {head}", number):
        record = run_stream(classifier, features, tasks, seed, after_task, made)
    write_json(output, record.to_json())
    display.table("result", ["", ""], summary(record))
    display.say(f"written: {output}")


def describe_task(classifier: FrugalClassifier, record: Record) -> str:
    """One line after each task."""
    number = len(record.accuracy)
    row = record.accuracy[-1][:number]
    return (
        f"task {number}: {plural(len(record.tasks[number - 1]), 'new class')}, "
        f"{len(classifier.classes_)} in all; accuracy {sum(row) / number:.1%} "
        f"(this task {row[-1]:.1%}); {record.seconds[-1]['learn']:.1f} s"
    )


def summary(record: Record) -> list[list[str]]:
    """What a person wants to know of a run."""
    rows = [
        [name.replace("_", " "), f"{record.metrics[name]:.2%}"]
        for name in (
            "final_average_accuracy",
            "average_incremental_accuracy",
            "forgetting",
            "backward_transfer",
        )
    ]
    rows += [
        ["parameters, as the paper counts", count(record.memory["paper"])],
        ["parameters stored", count(record.memory["stored"])],
        ["bytes", count(record.memory["bytes"])],
        ["seconds", f"{record.total_seconds:.1f}"],
    ]
    last = [state for state in record.layers if state["task"] == len(record.tasks)]
    if last:
        tightest = min(last, key=lambda state: state["rank"] / state["size"])
        free = f"{tightest['rank']} of {tightest['size']}, in layer {tightest['layer']}"
        rows.append(["fewest free directions", free])
        largest = max(state["proportion"] for state in last)
        rows.append(["largest R", f"{largest:.1e}" if largest else "0"])
    return rows


# --------------------------------------------------------------------------- bench


def bench_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``bench run``."""
    verbs = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    run = verbs.add_parser(
        "run",
        formatter_class=Help,
        help="run what is missing of some experiments",
        description="Run what is missing of the tables and figures that TOML files describe. "
        "Every run is written as it ends; after a kill, the same command goes on.",
    )
    about = "experiments to run"
    run.add_argument("experiments", type=Path, nargs="+", metavar="FILE.toml", help=about)
    about = (
        "data to run on: features (.npz), or images for experiments that train their "
        "encoder (default: what the experiment names, from the folder FRUGALVAE_DATA)"
    )
    run.add_argument("--data", action="append", default=[], metavar="NAME[=FILE]", help=about)
    run.add_argument("--seeds", type=from_zero, nargs="+", metavar="N", help="seeds to run instead")
    run.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="rows to run now")
    about = "columns to run now, by the names of their protocols"
    run.add_argument("--protocols", nargs="+", default=[], metavar="NAME", help=about)
    run.add_argument("--again", action="store_true", help="run what is done, too")
    add(run, "--set", help="change a setting in all rows, such as memory.max_steps=20")
    about = "import this module, or module:Class, if the files name it; may be given again"
    add(run, "--trust", help=about)
    about = "where results are kept (default: %(default)s)"
    run.add_argument(
        "-o", "--results", type=Path, default=Path("results"), metavar="FOLDER", help=about
    )
    about = "how many processes, of one thread each (default: one per core)"
    add(run, "--jobs", help=about)
    about = "list the runs that are missing, and run nothing"
    run.add_argument("--plan", action="store_true", help=about)
    add_ray(run, "run")
    add(run, "--quiet")
    run.set_defaults(if_interrupted="finished runs are kept, and the same command goes on")


def run_bench(options: argparse.Namespace) -> int:
    """Run what is missing; 1 if a run failed."""
    from frugalvae_lab.bench.grid_run import run_grid
    from frugalvae_lab.bench.pool import ProcessPool, RayPool

    def make_pool() -> Pool:
        if options.ray or options.ray_address:
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
        rows=options.rows,
        protocols=options.protocols,
        again=options.again,
        plan=options.plan,
        quiet=options.quiet,
    )
    return 1 if failed else 0


# --------------------------------------------------------------------------- report


def report_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``report``."""
    about = "the folder of 'bench run'"
    parser.add_argument("results", type=Path, metavar="RESULTS", help=about)
    about = "the report to write: .html, .md or .csv (default: report.html)"
    add(parser, "--output", default=Path("report.html"), help=about)
    about = "write this table alone (default: all but races, which are pages of their own)"
    parser.add_argument("--table", metavar="NAME", help=about)
    add(parser, "--trust", help="import this module, or module:Class, if the tables name it")


def run_report(options: argparse.Namespace) -> None:
    """Write the report."""
    from frugalvae_lab.report.pages import write_report

    trust = tuple(options.trust)
    print(write_report(options.results, options.output, options.table, trust))


# --------------------------------------------------------------------------- memory


def memory_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``memory``."""
    about = f"the memory: {', '.join(MEMORIES.names)}, or module:Class"
    parser.add_argument("--memory", required=True, metavar="NAME", help=about)
    for name, usual, about in (
        ("--classes", None, "how many classes"),
        ("--tasks", TASKS, "in how many tasks (default: %(default)s)"),
        ("--dim", 768, "the feature dimension (default: %(default)s)"),
        ("--samples", None, "training samples in all; store-all and fetril need it"),
    ):
        needed = name == "--classes"
        parser.add_argument(
            name, type=positive, default=usual, required=needed, metavar="N", help=about
        )
    add(parser, "--set", help="change a setting, such as memory.budget=1MB")
    add(parser, "--json")


def run_memory(options: argparse.Namespace) -> None:
    """Print the cost."""
    from frugalvae.parts.protocols import MemoryReport

    memory = make_memory(options.memory, **settings_of(options, "memory")["memory"])
    parts = memory.cost(options.dim, options.classes, options.tasks, options.samples)
    report = MemoryReport(options.memory, options.classes, options.tasks, parts)
    if options.json:
        print_json(report.to_json())
    else:
        print(report)


# --------------------------------------------------------------------------- demo


def demo_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``demo``."""
    add(
        parser, "--output", default=Path("demo.html"), help="the page to write (default: demo.html)"
    )
    about = "also write a still picture (PNG)"
    parser.add_argument("--picture", type=Path, metavar="FILE", help=about)
    about = "seed of everything random, also of the order of the digits (default: 0)"
    add(parser, "--seed", help=about)
    add(parser, "--quiet")


def run_demo(options: argparse.Namespace) -> None:
    """Teach digits to several memories, and write the page."""
    from frugalvae_lab.demo import demo

    check_output(options.output, ".html", ".htm")
    if options.picture is not None:
        check_output(options.picture, ".png")
    demo(options.output, options.picture, options.seed, options.quiet)


#: Every verb: what ``frugalvae-lab --help`` has of it, its description, options and function.
VERBS = {
    "run": (
        "teach a feature file task by task, and measure",
        "Split the classes of a feature file into tasks, teach them one after the other, measure "
        "after each, and write the record as JSON.",
        run_options,
        run_run,
    ),
    "bench": (
        "run the experiments of tables and figures",
        "Experiments that are described in TOML files; see lab/docs/experiments.md.",
        bench_options,
        run_bench,
    ),
    "report": (
        "write tables and figures of measured experiments",
        "Write what 'bench run' measured: tables next to those of the paper, figures, and every "
        "run. The report lists what is missing or failed.",
        report_options,
        run_report,
    ),
    "memory": (
        "print what a memory costs before it is trained",
        "Print the parameters and bytes of a memory, by component, before anything is trained.",
        memory_options,
        run_memory,
    ),
    "demo": (
        "teach handwritten digits, and write a page about it",
        "Teach ten handwritten digits, two per task, to several memories. A table and a page show "
        "what each of them remembers. This takes about a minute.",
        demo_options,
        run_demo,
    ),
}
