"""``frugalvae learn``: teach new classes from a folder of images."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import add, add_encoder, choice, refuse_encoder, settings_of
from frugalvae.console import Display, complain, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import plural, shortened, size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from frugalvae.encoders.remembered import Remembered
    from frugalvae.images.listing import Listing
    from frugalvae.images.photographs import Encoded
    from frugalvae.interfaces import Encoder
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
    add(parser, "file")
    parser.add_argument(
        "source",
        type=Path,
        metavar="FOLDER",
        help="a folder of images, a zip archive of it, or FEATURES.npz",
    )
    add_encoder(parser)
    add(parser, "--depth", "--strict", "--case-matters", "--trust", "--wait", "--json", "--quiet")
    parser.set_defaults(if_interrupted="what is encoded is kept, and the same command goes on")
    once = parser.add_argument_group("options of a new file, which cannot be changed later")
    add(once, "--memory", "--head")
    about = "change a setting, such as memory.budget=300000 or encoder.size=128; a wrong name lists"
    add(once, "--set", help=f"{about} all of them")
    add(once, "--seed", default=None)
    once.add_argument(
        "--float16",
        action="store_true",
        default=None,
        help="store parameters in 16 bits instead of 32; see docs/format.md",
    )


def run(options: argparse.Namespace) -> None:
    """Learn what is new, and say what came of it."""
    from frugalvae.storage.store import Store

    store = Store(options.file, half=bool(options.float16), trust=options.trust)
    with store.changing(f"frugalvae learn {options.file} {options.source}", options.wait):
        started, existed = time.perf_counter(), store.exists
        if existed:
            refuse_choices(options)
        model = store.load() if existed else new_model(options)
        lesson = Lesson(options, model, store, Display(options.quiet or options.json))
        samples = lesson.samples()
        if len(samples.y):
            model = lesson.teach(samples)
            seconds = time.perf_counter() - started
            lesson.say_learned(model, samples, seconds)
        else:
            lesson.say(f"nothing new in {options.source}; {options.file} is as it was")
    if options.json:
        print_json(report(options, model, samples))


def refuse_choices(options: argparse.Namespace) -> None:
    """Refuse options of a new file where the file exists already."""
    given = [f"--{name}" for name in ONCE if getattr(options, name) is not None]
    given += ["--set"] if options.set else []
    if given:
        raise InputError(
            f"{options.file} exists already: {' and '.join(given)} can be chosen only when a "
            "file is made; leave it out, or start another file"
        )


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


@dataclass
class NewSamples:
    """Features of new classes.

    Attributes
    ----------
    x, y
        A row per image, and the class of each.
    encoder
        What the classifier is to remember.
    text
        A text feature of each class, if the encoder can read.
    known
        Classes that were there too, but are known.
    skipped, missing
        Images that cannot be read, with the reason; and classes of which none can.
    left_out, notes
        Other files that were not read, with the reason; and what was assumed of folders.
    """

    x: NDArray[np.float32]
    y: NDArray[Any]
    encoder: Remembered
    text: dict[Any, NDArray[np.float32]] | None = None
    known: list[Any] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Lesson:
    """What is typed, and what it is taught to: a model, and the file that it goes to."""

    def __init__(
        self, options: argparse.Namespace, model: Model, store: Store, display: Display
    ) -> None:
        self.options, self.model, self.store = options, model, store
        self.display, self.say = display, display.say
        self.known = [key(label) for label in model.classes.tolist()]
        self.encoder: Remembered = model.encoder if model.n_tasks else {}

    def samples(self) -> NewSamples:
        """Features of what is new, with a line for all that is left out."""
        from frugalvae.images.listing import counted, named, open_images

        options = self.options
        if options.source.suffix == ".npz":
            refuse_encoder(options, options.source)
            return self.from_features(options.source)
        names = [str(label) for label in self.known]
        with open_images(options.source, "learning", depth=options.depth, known=names) as found:
            self.say(*found.notes, *counted(found.skipped))
            with self.display.watching():
                made = self.from_folder(found)
        say = complain if options.quiet else self.say  # what is lost is told in any case
        if made.skipped:
            lines = "\n".join(named(made.skipped))
            say(f"left out as unreadable, {len(made.skipped):,}:\n{lines}")
        for name in made.missing:
            say(f"class {name!r} is left out: no image of it can be read")
        return made

    def split(self, labels: list[Any]) -> tuple[list[Any], list[Any]]:
        """Which labels are new, and which are known: a line says what is not learned again."""
        from frugalvae.checks import check_case

        new = [label for label in labels if label not in self.known]
        known = [label for label in labels if label in self.known]
        if not self.options.case_matters:
            check_case(map(str, new), map(str, self.model.classes.tolist()))
        if known:
            number = plural(len(known), "known class")
            self.say(f"{number} left alone: 'frugalvae update' takes more images of a known class")
        return new, known

    def from_features(self, path: Path) -> NewSamples:
        """The training features of a feature file."""
        import numpy as np

        from frugalvae.encoders.remembered import check_same
        from frugalvae.images.feature_file import load_training

        features = load_training(path)
        check_same(self.encoder, features.encoder, self.store.given, path)
        labels: NDArray[Any] = np.array([key(label) for label in features.y_train.tolist()])
        new, known = self.split(np.unique(labels).tolist())
        rows = np.isin(labels, np.array(new, labels.dtype)) if new else np.zeros(len(labels), bool)
        encoder = features.encoder if self.encoder == {} else self.encoder  # a new file has none
        told = {key(label): vector for label, vector in (features.text or {}).items()}
        text = {label: told[label] for label in new} if told else None
        return NewSamples(features.x_train[rows], labels[rows], encoder, text, known)

    def from_folder(self, found: Listing) -> NewSamples:
        """The images of new classes, encoded; after a kill, from where it stopped."""
        import numpy as np

        from frugalvae.encoders.remembered import load_encoder
        from frugalvae.images.encode import describe, named_reasons
        from frugalvae.images.listing import named, refuse

        if self.options.strict:
            refuse(found.skipped)
        new, known = self.split(found.classes)
        told: dict[str, Any] = {"left_out": found.skipped, "notes": found.notes}
        if not new:
            self.clear_parts(found)
            nothing = np.empty((0, 0), np.float32)
            return NewSamples(nothing, np.array([]), self.encoder, known=known, **told)
        images = found.of(new)
        number = f"{plural(len(images.files), 'image')} of {plural(len(new), 'new class')}"
        self.say(f"{number}: {shortened(sorted(new))}")
        encoder, remembered = load_encoder(
            self.encoder, choice(self.options), self.store.given, complain
        )
        text = describe(encoder, sorted(new))
        done = self.encode(found, encoder, new)
        skipped = named_reasons(images, done)
        if self.options.strict:
            refuse(skipped)
        labels: NDArray[Any] = images.labels[done.places]
        learned = set(labels.tolist())
        if not learned:
            why = "\n".join(named(skipped))
            raise InputError(f"{found.name}: no image of a new class can be read:\n{why}")
        kept = None if text is None else {name: text[name] for name in learned}
        missing = sorted(set(new) - learned)
        return NewSamples(done.features, labels, remembered, kept, known, skipped, missing, **told)

    def encode(self, found: Listing, encoder: Encoder, new: list[str]) -> Encoded:
        """Features of the images of new classes; finished shards are kept beside the file."""
        from frugalvae.images.encode import SHARD, Parts, cut, depends_on, digest, finish
        from frugalvae.images.photographs import encode_here

        batch, threads = self.options.batch_size, os.cpu_count() or 1
        shard = batch * max(SHARD // batch, 1)
        of = depends_on(found, encoder.identity, shard)
        done, _ = finish(
            Parts(self.store.path, of | {"classes": digest(sorted(new))}),
            cut(found.of(new).files, shard),
            lambda shards: encode_here(shards, encoder, batch, threads),
            self.say,
        )
        return done

    def clear_parts(self, found: Listing) -> None:
        """Remove what was encoded of this folder: all of it is learned."""
        from frugalvae.images.encode import Parts, depends_on

        parts = Parts(self.store.path, depends_on(found, {}, 0))
        if parts.are_of("images"):
            parts.remove()

    def teach(self, samples: NewSamples) -> Model:
        """Learn and write; then what was encoded for it is not needed any more."""
        from frugalvae.cli.common import announce_model, with_source
        from frugalvae.images.encode import Parts

        if self.store.exists:
            announce_model(self.model, self.options.model, self.options.file)
        with self.display.watching():
            model = self.model.learn(samples.x, samples.y, text=samples.text)
        if samples.encoder:
            model = replace(model, encoder=samples.encoder)
        self.store.save(with_source(model, self.options.source))
        if self.options.source.suffix != ".npz":
            Parts(self.store.path, {}).remove()
        return model

    def say_learned(self, model: Model, samples: NewSamples, seconds: float) -> None:
        """What was learned, and what the file knows now."""
        from frugalvae.cli.common import few_samples

        classes = plural(len(set(samples.y.tolist())), "class")
        known, taken = plural(len(model.classes), "class"), size(self.store.path.stat().st_size)
        few = few_samples(model.classes.tolist(), model.n_samples_of_class.tolist())
        self.say(
            f"learned {classes} from {plural(len(samples.y), 'image')} in {seconds:.1f} s",
            f"{self.options.file}: {known}, {taken}",
            *([f"warning: {few}"] if few else []),
        )


def key(label: Any) -> Any:
    """A label as it is compared: names as all systems write them, numbers as they are."""
    from frugalvae.checks import as_label

    return as_label(label) if isinstance(label, str) else label


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
