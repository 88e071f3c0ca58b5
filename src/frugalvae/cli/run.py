"""``frugalvae run``: a feature file, streamed through a memory and a head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frugalvae.bench.run import Record, run_stream
from frugalvae.classifier import FrugalClassifier
from frugalvae.console import Display
from frugalvae.files import check_place, write_json
from frugalvae.heads import make_head
from frugalvae.images.feature_file import load_features
from frugalvae.memories import make_memory
from frugalvae.plugins import settings_of


def run_features(
    path: Path,
    *,
    tasks: int | Sequence[int],
    memory: str,
    head: str,
    settings: dict[str, dict[str, Any]],
    seed: int,
    held_out: float | None,
    output: Path | None,
    quiet: bool,
) -> Record:
    """Stream the file, show how it goes, and write the record."""
    classifier = FrugalClassifier(
        make_memory(memory, **settings["memory"]),
        make_head(head, **settings["head"]),
        random_state=seed,
    )
    changed = [
        f"{part}.{key}={value}" for part in settings for key, value in settings[part].items()
    ]
    named = "-".join([path.stem, memory, head, *changed, f"seed{seed}.json"])
    output = output or Path(named.replace(":", "."))  # no colon in a file's name
    check_place(output)
    features = load_features(path)
    if held_out is not None:
        features = features.held_out(held_out, seed=0)
    display = Display(quiet)
    count = tasks if isinstance(tasks, int) else len(tasks)
    train, test = len(features.x_train), len(features.x_test)
    display.say(
        f"{features.name}: {len(features.classes)} classes in {count} tasks, "
        f"{train:,} training and {test:,} test samples of {features.x_train.shape[1]} numbers"
    )
    with display.working(f"{memory} + {head}", count):

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
                "memory": {"name": memory, **settings_of(classifier.memory)},
                "head": {"name": head, **settings_of(classifier.head)},
                "held_out": held_out,
            },
        )
    write_json(output, record.to_json())
    display.table("result", ["", ""], summary(record))
    display.say(f"written: {output}")
    return record


def describe_task(classifier: FrugalClassifier, record: Record) -> str:
    """One line after each task."""
    number = len(record.accuracy)
    row = record.accuracy[-1][:number]
    now = sum(row) / number
    return (
        f"task {number}: {len(record.tasks[number - 1])} new classes, "
        f"{len(classifier.classes_)} in all; accuracy {now:.1%} "
        f"(this task {row[-1]:.1%}); {record.seconds[-1]['learn']:.1f} s"
    )


def summary(record: Record) -> list[list[str]]:
    """What a person wants to know of a run."""
    seconds = sum(sum(task.values()) for task in record.seconds)
    rows = [
        ["final average accuracy", f"{record.metrics['final_average_accuracy']:.2%}"],
        ["average incremental accuracy", f"{record.metrics['average_incremental_accuracy']:.2%}"],
        ["forgetting", f"{record.metrics['forgetting']:.2%}"],
        ["backward transfer", f"{record.metrics['backward_transfer']:.2%}"],
        ["numbers, as the paper counts", f"{record.memory['paper']:,}"],
        ["numbers really stored", f"{record.memory['stored']:,}"],
        ["bytes", f"{record.memory['bytes']:,}"],
        ["seconds", f"{seconds:.1f}"],
    ]
    last = [state for state in record.layers if state["task"] == len(record.tasks)]
    if last:
        tightest = min(last, key=lambda state: state["rank"] / state["size"])
        free = f"{tightest['rank']} of {tightest['size']}, in layer {tightest['layer']}"
        rows.append(["fewest free directions", free])
        rows.append(["largest R", f"{max(state['proportion'] for state in last):.1e}"])
    return rows
