"""``frugalvae-lab run``: teach a feature file task by task, and measure."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import add, check_output, settings_of, share, task_sizes
from frugalvae.console import Display
from frugalvae.files import write_json
from frugalvae.formatting import count, plural
from frugalvae.parts import usual_head

if TYPE_CHECKING:
    from frugalvae.classifier import FrugalClassifier
    from frugalvae_lab.bench.stream_run import Record

TASKS = 10  # the usual number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Split the classes of a feature file into tasks, teach them one after the other, measure "
        "after each, and write the record as JSON."
    )
    parser.add_argument(
        "features", type=Path, metavar="FEATURES.npz", help="x_train, y_train, x_test, y_test"
    )
    parser.add_argument(
        "--tasks",
        type=task_sizes,
        default=TASKS,
        metavar="N or N,N,...",
        help="how many tasks, or the size of each (default: 10); the seed shuffles the classes",
    )
    add(parser, "--memory", default="moments")
    add(parser, "--head")
    about = "change a setting of the memory or the head, such as memory.budget=300000; a wrong name"
    add(parser, "--set", help=f"{about} lists all of them")
    add(parser, "--seed")
    parser.add_argument(
        "--held-out",
        type=share,
        metavar="SHARE",
        help="measure on this share of the training samples instead of the test set",
    )
    about = "the record to write (default: FEATURES-MEMORY-HEAD-seedN.json)"
    add(parser, "--output", help=about)
    add(parser, "--quiet")


def run(options: argparse.Namespace) -> None:
    """Teach the file, show how it goes, and write the record."""
    from frugalvae.classifier import FrugalClassifier
    from frugalvae.images.feature_file import load_features
    from frugalvae.parts import make_head, make_memory
    from frugalvae.parts.registry import settings_of as all_settings
    from frugalvae_lab.bench.stream_run import run_stream

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
    with display.working(f"{memory} + {head}", number):

        def after_task(classifier: FrugalClassifier, record: Record) -> None:
            display.step()
            display.say(describe_task(classifier, record))

        record = run_stream(
            classifier,
            features,
            tasks,
            seed,
            after_task,
            {
                "memory": {"name": memory, **all_settings(classifier.memory)},
                "head": {"name": head, **all_settings(classifier.head)},
                "held_out": options.held_out,
            },
        )
    write_json(output, record.to_json())
    display.table("result", ["", ""], summary(record))
    display.say(f"written: {output}")


def describe_task(classifier: FrugalClassifier, record: Record) -> str:
    """One line after each task."""
    number = len(record.accuracy)
    row = record.accuracy[-1][:number]
    now = sum(row) / number
    return (
        f"task {number}: {plural(len(record.tasks[number - 1]), 'new class')}, "
        f"{len(classifier.classes_)} in all; accuracy {now:.1%} "
        f"(this task {row[-1]:.1%}); {record.seconds[-1]['learn']:.1f} s"
    )


def summary(record: Record) -> list[list[str]]:
    """What a person wants to know of a run."""
    spent = sum(sum(task.values()) for task in record.seconds)
    rows = [
        ["final average accuracy", f"{record.metrics['final_average_accuracy']:.2%}"],
        ["average incremental accuracy", f"{record.metrics['average_incremental_accuracy']:.2%}"],
        ["forgetting", f"{record.metrics['forgetting']:.2%}"],
        ["backward transfer", f"{record.metrics['backward_transfer']:.2%}"],
        ["parameters, as the paper counts", count(record.memory["paper"])],
        ["parameters stored", count(record.memory["stored"])],
        ["bytes", count(record.memory["bytes"])],
        ["seconds", f"{spent:.1f}"],
    ]
    last = [state for state in record.layers if state["task"] == len(record.tasks)]
    if last:
        tightest = min(last, key=lambda state: state["rank"] / state["size"])
        free = f"{tightest['rank']} of {tightest['size']}, in layer {tightest['layer']}"
        rows.append(["fewest free directions", free])
        largest = max(state["proportion"] for state in last)
        rows.append(["largest R", f"{largest:.1e}" if largest else "0"])
    return rows
