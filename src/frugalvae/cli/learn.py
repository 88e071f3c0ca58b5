"""``frugalvae learn``: teach what is new in a folder of images."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.answers import expectation, few_samples
from frugalvae.cli.options import add, add_encoder, add_ray, choice, settings_of
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, size
from frugalvae.labels import as_label

if TYPE_CHECKING:
    from frugalvae.cli.lesson import LessonResult
    from frugalvae.model import Model
    from frugalvae.storage.store import Store

ONCE = ("memory", "head", "seed")  # and settings: chosen when a file is made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn the classes of a folder or a zip archive: each folder of images in it is a class; "
        "of train/ and test/, train/ is learned. The first call makes the file; later calls learn "
        "what is new, of new classes and known ones. Images that were taught before are recognised "
        "and not counted again, so that the same command can be run over a folder that grows. "
        "After a kill, the same command goes on. --names teaches classes by name alone, where the "
        "encoder reads. Instead of a folder you can give a feature file "
        "(.npz) of 'frugalvae encode'; its training part is learned."
    )
    add(parser, "file")
    parser.add_argument(
        "source",
        type=Path,
        nargs="?",
        metavar="FOLDER",
        help="a folder of images, a zip archive of it, or FEATURES.npz",
    )
    parser.add_argument(
        "--names",
        action="append",
        metavar="NAMES",
        help="instead of a folder: names of classes to learn by name alone, such as "
        "'heron, egret', or a file with a name per line; the encoder must read, as CLIP does",
    )
    add_encoder(parser)
    add_choices(parser)
    about = "processes that encode and sum images, or tasks on Ray (default: 1, with threads)"
    add(parser, "--jobs", default=1, help=about)
    add_ray(parser, "task")
    add(parser, "--depth", "--strict", "--case-matters", "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(if_interrupted="what is encoded is kept, and the same command goes on")
    once = parser.add_argument_group("options of a new file, which cannot be changed later")
    add(once, "--memory", "--head")
    about = "change a setting, such as memory.budget=300000 or encoder.size=128; a wrong name lists"
    add(once, "--set", help=f"{about} all of them")
    add(once, "--seed", default=None)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """What of a folder is to be learned."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be learned, and change nothing"
    )
    only = parser.add_mutually_exclusive_group()
    for kind, others in (("new", "known classes"), ("known", "new classes")):
        only.add_argument(
            f"--only-{kind}",
            dest="only",
            action="store_const",
            const=kind,
            help=f"leave out images of {others}",
        )
    parser.add_argument(
        "--except",
        dest="leave_out",
        type=Path,
        metavar="LIST",
        help="leave out the images in this list, such as 'frugalvae check' writes: one path per "
        "line, as inside FOLDER; the file remembers them, and leaves them out from then on",
    )
    parser.add_argument(
        "--again",
        type=as_label,
        action="append",
        default=[],
        metavar="CLASS",
        help="learn the folder of this name although the class was forgotten, was renamed, or was "
        "taught without digests, or some of it was left out before; may be given again",
    )
    parser.add_argument(
        "--near",
        choices=("new", "same", "skip"),
        help="a new name that is nearly a known one is a new class, the same class, or left out "
        "(default: ask at a terminal; elsewhere new, with a warning)",
    )


def run(options: argparse.Namespace) -> None:
    """Learn what is new, and say what came of it."""
    from frugalvae.cli.lesson import Lesson
    from frugalvae.storage.store import Store

    if (options.source is None) == (options.names is None):
        raise InputError(
            "learn takes a folder or --names, one of them; for both, run it twice: "
            f"frugalvae learn {options.file} photos/, then "
            f"frugalvae learn {options.file} --names 'heron, egret'"
        )
    source = options.source or "--names"
    store = Store(options.file, trust=choice(options).named)
    with store.changing(f"frugalvae learn {options.file} {source}", options.wait):
        started = time.perf_counter()
        model = model_to_teach(store, options)
        display = Display(options.quiet or options.json)
        lesson = Lesson(options, model, store, display)
        result = lesson.run()
        if result.learned:
            say_learned(display, options, result, time.perf_counter() - started)
        elif options.dry_run:
            display.say(f"--dry-run: nothing was encoded, and {options.file} is as it was")
        elif result.model is not model:
            display.say(f"nothing new in {source}; {options.file} remembers what is left out")
        else:
            display.say(f"nothing new in {source}; {options.file} is as it was")
    if options.json:
        print_json(report(options, result))


def model_to_teach(store: Store, options: argparse.Namespace) -> Model:
    """What the file knows, or a new model; options of a new one are refused where classes are."""
    from frugalvae.encoders.remembered import check_views

    given = [f"--{name}" for name in ONCE if getattr(options, name) is not None]
    given += ["--set"] if options.set else []
    if not store.exists:
        return new_model(options)
    if given and store.read().document["classes"]["values"]:
        raise InputError(
            f"{options.file} exists already: {' and '.join(given)} can be chosen only when a "
            "file is made; leave it out, or start another file"
        )
    model = store.load(empty=True)
    check_views(model.encoder, options.views, options.file)
    return replace(model, recipe=new_model(options).recipe) if given else model


def new_model(options: argparse.Namespace) -> Model:
    """A model as it was asked for, which knows nothing yet."""
    from frugalvae.heads import make_head
    from frugalvae.memories import make_memory, usual_head
    from frugalvae.model import Model, Recipe

    changed = settings_of(options, "memory", "head", "encoder")
    memory = str(options.memory or Recipe.memory)
    head = str(options.head or usual_head(memory))
    recipe = Recipe(
        make_memory(memory, **changed["memory"]) if changed["memory"] else memory,
        make_head(head, **changed["head"]) if changed["head"] else head,
        calibrate=True,  # people look at the probabilities
        random_state=Recipe.random_state if options.seed is None else options.seed,
    )
    recipe.parts()  # or refuse what cannot be made here, before anything is encoded
    return Model(recipe)


def report(options: argparse.Namespace, result: LessonResult) -> dict[str, Any]:
    """What ``--json`` prints."""
    model = result.model
    return {
        "file": str(options.file),
        "dry_run": options.dry_run,
        "learned": {str(label): result.learned[label] for label in sorted(result.learned)},
        "known": result.known,
        "unreadable": result.skipped,
        "left_out": result.missing,
        "excepted": result.excepted,
        "skipped": result.left_out,
        "assumed": result.notes,
        **result.intake.to_json(),
        "classes": len(model.classes),
        "expected": model.forecast.to_json() if model.forecast else None,
        "encoder": model.remembered,
    }


def say_learned(
    display: Display, options: argparse.Namespace, result: LessonResult, seconds: float
) -> None:
    """What was learned, and what the file knows now."""
    model = result.model
    classes, count = plural(len(result.learned), "class"), sum(result.learned.values())
    taught = f"from {plural(count, result.intake.what)}" if count else "by name alone"
    known, taken = plural(len(model.classes), "class"), size(options.file.stat().st_size)
    few = few_samples(model.classes.tolist(), model.n_samples_of_class.tolist())
    display.say(
        f"learned {classes} {taught} in {seconds:.1f} s",
        f"{options.file}: {known}, {taken}",
        *expectation(model.forecast.to_json() if model.forecast else None),
        *([f"warning: {few}"] if few else []),
    )
