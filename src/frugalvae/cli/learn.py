"""``frugalvae learn``: teach what is new in a folder of images."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add, add_encoder, add_ray, choice, refuse_encoder, settings_of
from frugalvae.console import Display, print_error, print_json
from frugalvae.errors import InputError
from frugalvae.files import read_plain
from frugalvae.formatting import plural, shortened, size
from frugalvae.images import holds_features
from frugalvae.labels import as_label, check_label, near, near_pairs, nearly_known
from frugalvae.model.answers import expectation, few_samples

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.samples import Samples
    from frugalvae.storage.store import Store
    from frugalvae.verbs.learn import Lesson, Meant

LONGEST = 2**20  # bytes of a file of names
ONCE = ("memory", "head", "seed")  # and settings: chosen when a file is made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn the classes of a folder or a zip archive: each folder of images in it is a class; "
        "of train/ and test/, train/ is learned. The first call makes the file; later calls learn "
        "new images, of new classes and of known ones. Images that were learned before are "
        "recognised and not counted again, so you can repeat the command as the folder grows. "
        "If interrupted, run the same command again: it continues. --names teaches classes by name "
        "alone, if the encoder can read names, as CLIP can. Instead of a folder you can give a "
        "feature file (.npz) of 'frugalvae encode'; its training part is learned."
    )
    add(parser, "file")
    parser.add_argument(
        "source",
        type=Path,
        nargs="*",
        metavar="FOLDER",
        help="a folder of images, a zip archive of it, or FEATURES.npz; with --class, images and "
        "folders of one class",
    )
    parser.add_argument(
        "--class",
        dest="label",
        metavar="NAME",
        help="all images are of this class, known or new, whatever their folders are called",
    )
    parser.add_argument(
        "--flat",
        action="store_true",
        help="with --class: take all images of a folder, even if folders in it are named after "
        "other classes",
    )
    parser.add_argument(
        "--names",
        action="append",
        metavar="NAMES",
        help="instead of a folder: names of classes to learn by name alone, such as "
        "'heron, egret', or a file with a name per line; needs an encoder that reads, such as CLIP",
    )
    add_encoder(parser)
    add_choices(parser)
    about = "processes that encode images, or tasks on Ray (default: 1, with threads)"
    add(parser, "--jobs", default=1, help=about)
    add_ray(parser, "task")
    add(parser, "--depth", "--strict", "--case-matters", "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(if_interrupted="what is encoded is kept, and the same command continues")
    once = parser.add_argument_group("options of a new file, which cannot be changed later")
    add(once, "--memory", "--head")
    about = "change a setting, such as memory.budget=300000 or encoder.size=128; the error about a "
    add(once, "--set", help=f"{about}wrong name lists all names")
    add(once, "--seed", default=None)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """What of a folder is to be learned."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be learned, and change nothing"
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
        help="leave out the images in this list, such as the one that 'frugalvae check' writes: a "
        "path per line, relative to FOLDER; FILE.frugal remembers them, and leaves them out in "
        "later calls, too",
    )
    parser.add_argument(
        "--again",
        action="append",
        default=[],
        metavar="CLASS",
        help="learn all images in the folder of this name, although the class was forgotten or "
        "renamed, was taught by features alone, or some of them were left out; may be repeated",
    )
    parser.add_argument(
        "--near",
        choices=("new", "same", "skip"),
        help="what to do with a new name that is nearly a known one: make it a new class, the same "
        "class, or skip it (default: ask at a terminal; elsewhere new, with a warning)",
    )


def run(options: argparse.Namespace) -> None:
    """Learn what is new, and say what came of it."""
    from frugalvae.encoding import Parts
    from frugalvae.model.history import with_source
    from frugalvae.storage.store import Store

    if bool(options.source) == bool(options.names):
        raise InputError(
            "learn takes a folder or --names, one of them; for both, run it twice: "
            f"frugalvae learn {options.file} photos/, then "
            f"frugalvae learn {options.file} --names 'heron, egret'"
        )
    if len(options.source) > 1 and options.label is None:
        raise InputError("learn takes one folder; give --class NAME if all of it is of one class")
    if options.label is not None:
        options.label = check_label(options.label)
    options.again = [as_label(name) for name in options.again]
    options.inputs, options.source = options.source, (options.source or [None])[0]
    source = options.source or "--names"
    store = Store(options.file, trust=choice(options).named)
    with store.changing(f"frugalvae learn {options.file} {source}", options.wait):
        started = time.perf_counter()
        model = model_to_teach(store, options)
        display = Display(options.quiet or options.json)
        teach = from_names if options.names else from_samples
        lesson = teach(model, store, options, display)
        changed = lesson.model is not model
        if changed:
            after, folder = lesson.model, options.source if lesson.learned else None
            store.save(with_source(after, folder.resolve().name) if folder else after)
            if folder and lesson.plan.what == "image":
                Parts(store.path, {}).remove()
        say_unreadable(lesson, options, display)
        display.say(*lesson.plan.grown)
        if lesson.learned:
            say_learned(display, options, lesson, time.perf_counter() - started)
        elif options.dry_run:
            display.say(f"--dry-run: nothing was encoded, and {options.file} is as it was")
        elif changed:
            display.say(f"nothing new in {source}; {options.file} remembers what is left out")
        else:
            display.say(f"nothing new in {source}; {options.file} is as it was")
    if options.json:
        print_json({"file": str(options.file), "dry_run": options.dry_run, **lesson.to_json()})


def from_samples(
    model: Model, store: Store, options: argparse.Namespace, display: Display
) -> Lesson:
    """Teach what is new in a folder, an archive or a feature file."""
    from frugalvae.engines import engine
    from frugalvae.samples import counted, open_samples
    from frugalvae.verbs.changes import resolve_label
    from frugalvae.verbs.learn import learn

    if holds_features(options.source):
        refuse_encoder(options, options.source)
    known = [*map(str, model.classes.tolist()), *model.aliases]
    if options.label is None:
        opened = open_samples(options.source, "learning", depth=options.depth, known=known)
    else:
        label = resolve_label(model, options.label, options.case_matters)
        options.again = [*options.again, str(label)]
        opened = of_one_class(options, label, model, display)
    where = engine(options.jobs, ray=options.ray, address=options.ray_address, gpus=options.gpus)
    with opened as samples, where as run_on:
        display.say(*samples.notes, *counted(samples.skipped))
        leave_out = excepted(options, samples, display.say)
        with display.watching():
            return learn(
                model,
                samples,
                choice(options),
                store.given,
                again=options.again,
                only=options.only,
                leave_out=leave_out,
                meant=lambda new: misspelt(new, model, options, display),
                case_matters=options.case_matters,
                strict=options.strict,
                dry_run=options.dry_run,
                engine=run_on,
                batch_size=options.batch_size,
                place=store.path,
                say=display.say,
            )


@contextmanager
def of_one_class(
    options: argparse.Namespace, label: Any, model: Model, display: Display
) -> Iterator[Samples]:
    """All images of folders and files, or rows of one feature file, as samples of a class."""
    import numpy as np

    from frugalvae.cli.changes import check_one_class
    from frugalvae.samples import open_unlabelled

    with open_unlabelled(options.inputs, "x_train", label) as groups:
        if len(groups) > 1:
            raise InputError("--class takes images and folders, or one feature file, not both")
        if groups[0].files is not None:
            check_one_class(options, groups[0], label, model.classes.tolist(), display.say)
        yield replace(groups[0], labels=np.array([label] * len(groups[0])))


def from_names(model: Model, store: Store, options: argparse.Namespace, display: Display) -> Lesson:
    """Teach the names that were typed, and are new."""
    from frugalvae.verbs.learn import learn_names

    with display.watching():
        return learn_names(
            model,
            [name for text in options.names for name in names_in(text)],
            choice(options),
            store.given,
            again=options.again,
            meant=lambda new: misspelt(new, model, options, display),
            case_matters=options.case_matters,
            dry_run=options.dry_run,
            say=display.say,
        )


def names_in(text: str) -> list[str]:
    """The names in ``heron, egret``, or in a file with a name per line; each once."""
    path = Path(text)
    lines = text.split(",")
    if os.path.exists(text) and not os.path.isdir(text):  # a list may be longer than any path
        try:
            lines = read_plain(path, LONGEST).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is no text in UTF-8; expected a name per line") from error
        except (OSError, InputError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); expected a name per line"
            ) from error
    names = list(dict.fromkeys(name for name in map(as_label, lines) if name))
    if not names:
        raise InputError(f"--names {text!r} holds no name; expected some, such as 'heron, egret'")
    return names


def excepted(
    options: argparse.Namespace, samples: Samples, say: Callable[..., object]
) -> Collection[str]:
    """The samples that the list of ``--except`` names; a line says how many."""
    if options.leave_out is None:
        return ()
    from frugalvae.care.lists import read_list

    listed = read_list(options.leave_out)
    found, absent = set(listed) & set(samples.names), sorted(set(listed) - set(samples.names))
    if listed and not found:
        raise InputError(
            f"--except {options.leave_out} names {shortened(listed, 1)}, and nothing of it is "
            f"in {options.source}; give the folder that the list was made of, or check it again"
        )
    if absent:
        say(f"not there, though --except names it: {shortened(absent)}")
    say(f"{plural(len(found), samples.what)} left out: {options.leave_out} lists them")
    return found


def misspelt(
    new: Sequence[str], model: Model, options: argparse.Namespace, display: Display
) -> Meant:
    """Ask about new names that are nearly known ones: which to leave out, and which are known."""
    leave, same = list[str](), dict[str, Any]()
    labels = {str(label): label for label in model.classes.tolist()}
    for name in new:
        other = near(name, labels)
        if other is None:
            continue
        answer = options.near or ask(name, other, options, display)
        if answer == "same":
            same[name] = labels[other]
        elif answer == "skip":
            leave.append(name)
    if not options.near:
        warn_of_twins([name for name in new if name not in {*leave, *same}])
    return leave, same


def warn_of_twins(new: Sequence[str]) -> None:
    """Say which new names are nearly the same as each other; either may be misspelt."""
    pairs = [f"{name!r} and {other!r}" for name, other in near_pairs(new)]
    if pairs:
        more = f" (and {plural(len(pairs) - 3, 'further pair')})" if len(pairs) > 3 else ""
        print_error(
            f"warning: taught as classes of their own, and nearly the same names: "
            f"{', '.join(pairs[:3])}{more}; 'frugalvae merge-classes' makes one of two, "
            "--near new accepts both"
        )


def ask(name: str, other: str, options: argparse.Namespace, display: Display) -> str:
    """What a name means that is nearly a known one: asked at a terminal, else assumed."""
    quiet = options.quiet or options.json or options.dry_run
    if quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_error(
            f"warning: {nearly_known([name], [other])[0]}; --near same takes such a name for "
            "the known class, --near skip leaves it out, --near new accepts it"
        )
        return "new"
    display.say(f"{name!r} is no known class, but {other!r} is.")
    meanings = {"n": "new", "s": "same", "l": "skip"}
    for _ in range(3):
        typed = input(f"A new class (n), the same as {other!r} (s), or leave it out (l)? ")
        meant = meanings.get(typed.strip().lower()[:1])
        if meant is not None:
            return meant
    return "skip"


def say_unreadable(lesson: Lesson, options: argparse.Namespace, display: Display) -> None:
    """Say which images cannot be read: what is lost is told in any case."""
    from frugalvae.samples import named

    say = print_error if options.quiet else display.say
    if lesson.unreadable:
        lines = "\n".join(named(lesson.unreadable))
        say(f"left out as unreadable, {len(lesson.unreadable):,}:\n{lines}")
    for name in lesson.missing:
        say(f"class {name!r} is left out: no image of it can be read")


def model_to_teach(store: Store, options: argparse.Namespace) -> Model:
    """What the file knows, or a new model; options of a new one are refused where classes are."""
    from frugalvae.encoders import check_views

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
    from frugalvae.model.model import Model, Recipe
    from frugalvae.parts import make_head, make_memory, usual_head

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


def say_learned(
    display: Display, options: argparse.Namespace, lesson: Lesson, seconds: float
) -> None:
    """What was learned, and what the file knows now."""
    model = lesson.model
    classes, count = plural(len(lesson.learned), "class"), sum(lesson.learned.values())
    taught = f"from {plural(count, lesson.plan.what)}" if count else "by name alone"
    known, taken = plural(len(model.classes), "class"), size(options.file.stat().st_size)
    few = few_samples(model.classes.tolist(), model.n_samples_of_class.tolist())
    display.say(
        f"learned {classes} {taught} in {seconds:.1f} s",
        f"{options.file}: {known}, {taken}",
        *expectation(model.forecast.to_json() if model.forecast else None),
        *([f"warning: {few}"] if few else []),
    )
