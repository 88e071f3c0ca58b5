"""``frugalvae learn``: teach new classes from a folder of images."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add_case,
    add_encoder,
    add_file,
    add_folders,
    add_json,
    add_quiet,
    add_seed,
    add_settings,
    add_trust,
    add_wait,
    choice,
    refuse_encoder,
    settings_of,
)
from frugalvae.cli.output import complain, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, size
from frugalvae.heads import HEADS
from frugalvae.memories import MEMORIES

if TYPE_CHECKING:
    from frugalvae.cli.new_samples import KnownClasses, NewSamples
    from frugalvae.console import Display
    from frugalvae.model import Model
    from frugalvae.storage.store import Store

ONCE = ("memory", "head", "seed", "float16")  # and settings: chosen when a file is made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Learn the classes of a folder or a zip archive: each folder of images in it is a class; "
        "of train/ and test/, train/ is learned. The first call makes the file; later calls learn "
        "the classes that are new, and need no image of the known ones. After a kill, the same "
        "command goes on. Instead of a folder you can give a feature file (.npz) of 'frugalvae "
        "encode'; its training part is learned."
    )
    add_file(parser)
    parser.add_argument(
        "source",
        type=Path,
        metavar="FOLDER",
        help="a folder of images, a zip archive of it, or FEATURES.npz",
    )
    add_encoder(parser)
    add_folders(parser)
    add_case(parser)
    add_trust(parser)
    add_wait(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(if_interrupted="what is encoded is kept, and the same command goes on")
    once = parser.add_argument_group("options of a new file, which cannot be changed later")
    once.add_argument(
        "--memory",
        metavar="NAME",
        help=f"{', '.join(MEMORIES)}, or module:Class (default: factors)",
    )
    once.add_argument(
        "--head",
        metavar="NAME",
        help=f"{', '.join(HEADS)}, or module:Class (default: the memory's usual head)",
    )
    add_settings(
        once,
        "change a setting, such as memory.budget=300000 or encoder.size=128; a wrong name lists "
        "all of them",
    )
    add_seed(once, "seed of everything random (default: 0)", default=None)
    once.add_argument(
        "--float16",
        action="store_true",
        default=None,
        help="store parameters in 16 bits instead of 32; see docs/format.md",
    )


def run(options: argparse.Namespace) -> None:
    """Learn what is new."""
    from frugalvae.console import Display
    from frugalvae.storage.store import Store

    display = Display(options.quiet or options.json)
    store = Store(options.file, half=bool(options.float16), trust=options.trust)
    with store.changing(f"frugalvae learn {options.file} {options.source}", options.wait):
        if store.exists:
            refuse_choices(options)
        report = teach(options, store, display)
    if options.json:
        print_json(report)


def refuse_choices(options: argparse.Namespace) -> None:
    """Refuse options of a new file where the file exists already."""
    given = [f"--{name}" for name in ONCE if getattr(options, name) is not None]
    given += ["--set"] if options.set else []
    if given:
        raise InputError(
            f"{options.file} exists already: {' and '.join(given)} can be chosen only when a "
            "file is made; leave it out, or start another file"
        )


def teach(options: argparse.Namespace, store: Store, display: Display) -> dict[str, Any]:
    """Learn what is new, say what came of it, and return the same as JSON."""
    from frugalvae.cli.change import announce_model
    from frugalvae.cli.summary import few_samples

    started = time.perf_counter()
    model = store.load() if store.exists else new_model(options)
    samples = prepare(options, known_classes(model, store, options.case_matters), display)
    new = sorted(set(samples.y.tolist()))
    if new:
        if store.exists:
            announce_model(model, options.model, options.file)
        with display.watching():
            model = model.learn(samples.x, samples.y, text=samples.text)
        finish(model, samples, options.source, store)
        seconds = time.perf_counter() - started
        classes, images = plural(len(new), "class"), plural(len(samples.y), "image")
        display.say(f"learned {classes} from {images} in {seconds:.1f} s")
        known, taken = plural(len(model.classes), "class"), size(store.path.stat().st_size)
        display.say(f"{options.file}: {known}, {taken}")
        few = few_samples(model.classes.tolist(), model.n_samples_of_class.tolist())
        if few:
            display.say(f"warning: {few}")
    else:
        display.say(f"nothing new in {options.source}; {options.file} is as it was")
    return report(options, model, samples)


def prepare(options: argparse.Namespace, taught: KnownClasses, display: Display) -> NewSamples:
    """Features of what is new, with a line for all that is left out."""
    from frugalvae.cli import new_samples
    from frugalvae.images.listing import counted, open_images

    if options.source.suffix == ".npz":
        refuse_encoder(options, options.source)
        return new_samples.from_features(options.source, taught, display.say)
    names = [str(label) for label in taught.classes]
    with open_images(options.source, "learning", depth=options.depth, known=names) as found:
        display.say_lines([*found.notes, *counted(found.skipped)])
        with display.watching():
            made = new_samples.from_folder(
                found,
                taught,
                choice(options),
                batch_size=options.batch_size,
                strict=options.strict,
                say=display.say,
            )
    say = complain if options.quiet else display.say  # what is lost is told in any case
    if made.skipped:
        say(f"left out as unreadable, {len(made.skipped):,}:\n{new_samples.lines(made.skipped)}")
    for name in made.missing:
        say(f"class {name!r} is left out: no image of it can be read")
    return made


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


def known_classes(model: Model, store: Store, case_matters: bool) -> KnownClasses:
    """What a model knows already."""
    from frugalvae.cli.new_samples import KnownClasses

    encoder = model.encoder if model.n_tasks else {}
    return KnownClasses(store, model.classes.tolist(), encoder, case_matters)


def finish(model: Model, samples: NewSamples, source: Path, store: Store) -> None:
    """Write what was learned; then what was encoded for it is not needed any more."""
    from frugalvae.cli.change import with_source
    from frugalvae.images.encode import Parts

    if samples.encoder:
        model = replace(model, encoder=samples.encoder)
    store.save(with_source(model, source))
    if source.suffix != ".npz":
        Parts(store.path, {}).remove()


def report(options: argparse.Namespace, model: Model, samples: NewSamples) -> dict[str, Any]:
    """What ``--json`` prints."""
    labels = samples.y.tolist()
    return {
        "file": str(options.file),
        "learned": {str(label): labels.count(label) for label in sorted(set(labels))},
        "known": samples.known,
        "unreadable": samples.skipped,
        "left_out": samples.missing,
        "skipped": samples.left_out,
        "assumed": samples.notes,
        "classes": len(model.classes),
        "encoder": samples.encoder,
    }
