"""A lesson: what of a folder or a feature file is new, encoded and taught to a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae import encoding
from frugalvae.care.guesses import refuse_guesses
from frugalvae.cli.options import choice, refuse_encoder
from frugalvae.console import Display, complain
from frugalvae.encoders.remembered import Remembered, check_same
from frugalvae.encoding import Parts, depends_on
from frugalvae.engines import engine
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import plural, quoted, shortened
from frugalvae.history import with_source
from frugalvae.images import holds_features
from frugalvae.intake import Intake, choose_samples
from frugalvae.labels import check_case, near, near_pairs, nearly_known
from frugalvae.samples import counted, named, open_samples, refuse
from frugalvae.sums import take

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from frugalvae.interfaces import Encoder
    from frugalvae.model import Model
    from frugalvae.samples import Samples
    from frugalvae.storage.store import Store
    from frugalvae.sums import Taken


@dataclass
class LessonResult:
    """What a lesson came to.

    Attributes
    ----------
    model
        What the file knows afterwards.
    intake
        What was to be taught, and what was not, and why.
    learned
        Samples by class that were taught.
    known
        Classes that were there and are known.
    skipped, missing
        Images that cannot be read, with the reason; and new classes of which none can.
    left_out, notes
        Other files that were not read, with the reason; and what was assumed of folders.
    excepted
        Images that are left out because the list of ``--except`` names them.
    """

    model: Model
    intake: Intake = field(default_factory=Intake)
    learned: dict[Any, int] = field(default_factory=dict)
    known: list[Any] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    excepted: list[str] = field(default_factory=list)


class Lesson:
    """What is typed, and what it is taught to: a model, and the file that it goes to."""

    def __init__(
        self, options: argparse.Namespace, model: Model, store: Store, display: Display
    ) -> None:
        self.options, self.model, self.store = options, model, store
        self.display, self.say = display, display.say
        self.encoder: Remembered = model.remembered
        features = options.source is not None and holds_features(options.source)
        self.what = "sample" if features else "image"
        self.same: dict[str, Any] = {}  # names that were said to mean a known class
        self.withheld: dict[str, NDArray[np.uint64]] = {}  # by folder, as --except says

    def run(self) -> LessonResult:
        """Teach what is new, with a line for all that is left out."""
        options = self.options
        if options.names is not None:
            from frugalvae.cli.naming import from_names

            return from_names(self)
        if self.what == "sample":
            refuse_encoder(options, options.source)
        names = [*map(str, self.model.classes.tolist()), *self.model.aliases]
        opened = open_samples(options.source, "learning", depth=options.depth, known=names)
        with opened as samples:
            self.say(*samples.notes, *counted(samples.skipped))
            return self.from_samples(samples)

    def excepted(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Which samples of these names the list of ``--except`` names; a line says how many."""
        options = self.options
        if options.leave_out is None:
            return np.zeros(len(names), bool)
        from frugalvae.care.except_list import read_list

        listed = read_list(options.leave_out)
        found = np.isin(np.array(names, object), np.array(listed, object))
        absent = sorted(set(listed) - set(names))
        if listed and not found.any():
            raise InputError(
                f"--except {options.leave_out} names {shortened(listed, 1)}, and nothing of it is "
                f"in {options.source}; give the folder that the list was made of, or check it again"
            )
        if absent:
            self.say(f"not there, though --except names it: {shortened(absent)}")
        self.say(f"{plural(int(found.sum()), self.what)} left out, as {options.leave_out} says")
        return found

    def withhold(self, names: NDArray[Any], digests: NDArray[np.uint64]) -> None:
        """Remember which samples the list leaves out, by folder."""
        for name in np.unique(names).tolist():
            self.withheld[name] = digests[names == name]

    def withholding(self, model: Model) -> Model:
        """The model with what the list leaves out of classes that are known."""
        names = {name: model.aliases.get(str(name), name) for name in self.withheld}
        for name, label in names.items():
            if label is not None:
                model = model.withholding({label: self.withheld[name]})
        return model

    def taught_nothing(self, result: LessonResult) -> LessonResult:
        """There is nothing to teach, but perhaps more to leave out from now on."""
        model, before = self.withholding(self.model), self.model.withheld
        more = {
            label: len(model.withheld.get(number, ())) - len(before.get(number, ()))
            for label, number in model.number_of.items()
        }
        more = {label: count for label, count in more.items() if count > 0}
        if more and not self.options.dry_run:
            result.model = model.recorded("leave out", more)
            self.store.save(result.model)
        return result

    # ------------------------------------------------------------ what is new

    def choose(self, names: NDArray[Any], digests: Any) -> Intake:
        """What is to be taught of samples of these classes; lines say it."""
        options, model = self.options, self.model
        known = [*model.classes.tolist()]
        self.refuse_absent(list(map(str, np.unique(names).tolist())))
        others = {*map(str, known), *(set(model.aliases) - set(options.again))}
        new = [name for name in np.unique(names).tolist() if str(name) not in others]
        refuse_guesses(map(str, new))
        if not options.case_matters:
            check_case(map(str, new), map(str, known))
        leave = [] if options.only == "known" else self.misspelt(list(map(str, new)))
        with self.display.watching():
            intake = choose_samples(
                model,
                names,
                digests,
                again=options.again,
                only=options.only,
                leave=leave,
                same=self.same,
                what=self.what,
            )
        self.say(*intake.taught, *intake.left_out)
        return intake

    def refuse_absent(self, names: list[str]) -> None:
        """Refuse to teach a class again of which there is nothing."""
        labels = [str(self.model.aliases.get(name, name)) for name in names]
        for name in self.options.again:
            if name not in {*names, *labels}:
                raise InputError(
                    f"--again {quoted(name)}: {self.options.source} has no class of this name."
                    f"{suggestion(name, names)} It has {shortened(names)}"
                )

    def misspelt(self, new: list[str]) -> list[str]:
        """Ask about new names that are nearly known ones; which of them to leave out."""
        leave = []
        labels = {str(label): label for label in self.model.classes.tolist()}
        for name in new:
            other = near(name, labels)
            if other is None:
                continue
            meant = self.options.near or self.ask(name, other)
            if meant == "same":
                self.same[name] = labels[other]
            elif meant == "skip":
                leave.append(name)
        if not self.options.near:
            self.warn_of_twins([name for name in new if name not in {*leave, *self.same}])
        return leave

    def warn_of_twins(self, new: list[str]) -> None:
        """Say which new names are nearly the same as each other; either may be misspelt."""
        pairs = [f"{name!r} and {other!r}" for name, other in near_pairs(new)]
        if pairs:
            more = f" (and {plural(len(pairs) - 3, 'further pair')})" if len(pairs) > 3 else ""
            complain(
                f"warning: taught as classes of their own, and nearly the same names: "
                f"{', '.join(pairs[:3])}{more}; 'frugalvae merge-classes' makes one of two, "
                "--near new says that they are right"
            )

    def ask(self, name: str, other: str) -> str:
        """What a name means that is nearly a known one: asked at a terminal, else assumed."""
        quiet = self.options.quiet or self.options.json or self.options.dry_run
        if quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
            complain(
                f"warning: {nearly_known([name], [other])[0]}; --near same takes such a name for "
                "the known class, --near skip leaves it out, --near new says that it is right"
            )
            return "new"
        self.say(f"{name!r} is no known class, but {other!r} is.")
        meanings = {"n": "new", "s": "same", "l": "skip"}
        for _ in range(3):
            typed = input(f"A new class (n), the same as {other!r} (s), or leave it out (l)? ")
            meant = meanings.get(typed.strip().lower()[:1])
            if meant is not None:
                return meant
        return "skip"

    # ------------------------------------------------------------ what is taught

    def from_samples(self, samples: Samples) -> LessonResult:
        """The samples that are new, encoded; after a kill, from where it stopped."""
        names, left_out = samples.names, self.excepted(samples.names)
        if samples.files is None:
            check_same(self.encoder, samples.made_by, self.store.given, samples.name)
        gone, samples = (samples.at(np.flatnonzero(rows)) for rows in (left_out, ~left_out))
        if len(gone):
            self.withhold(gone.labels, gone.digests("reading what is left out"))
        intake = self.choose(samples.labels, lambda rows: samples.at(rows).digests())
        result = LessonResult(self.model, intake, known=self.known(samples.labels))
        result.left_out, result.notes = samples.skipped, samples.notes
        result.excepted = [names[row] for row in np.flatnonzero(left_out)]
        if self.options.strict:
            with self.display.watching():
                samples.at(intake.rows).refuse_unreadable()
        if not len(intake.rows) or self.options.dry_run:
            if self.options.dry_run:
                self.try_more(result, samples)
            self.clear_parts(samples)
            return self.taught_nothing(result)
        encoder, remembered = samples.encoder(self.encoder, choice(self.options), self.store.given)
        taken = self.encode(samples, intake, encoder)
        result.skipped, result.missing = taken.unreadable, taken.missing
        if self.options.strict:
            refuse(result.skipped)
        if not taken.counts:
            self.clear_parts(samples)
        taken.check_new(samples.name)
        self.name_unreadable(result)
        self.say(*intake.grown)
        result.learned = taken.counts
        if taken.counts:
            self.teach(result, taken.lesson, remembered)
        return result

    def try_more(self, result: LessonResult, samples: Samples) -> None:
        """Nothing is going to be encoded: see which images of known classes can be read."""
        intake = result.intake
        more = np.flatnonzero(np.isin(intake.labels, list(intake.more)))
        samples = samples.at(intake.rows[more])
        with self.display.watching():
            result.skipped = samples.unreadable()
        self.name_unreadable(result)
        lost = [name in result.skipped for name in samples.names]
        intake.leave_out(intake.labels[more][lost].tolist())
        self.say(*intake.grown)

    def name_unreadable(self, result: LessonResult) -> None:
        """Say which images cannot be read: what is lost is told in any case."""
        say = complain if self.options.quiet else self.say
        if result.skipped:
            lines = "\n".join(named(result.skipped))
            say(f"left out as unreadable, {len(result.skipped):,}:\n{lines}")
        for name in result.missing:
            say(f"class {name!r} is left out: no image of it can be read")

    def encode(self, samples: Samples, intake: Intake, encoder: Encoder | None) -> Taken:
        """What the samples come to; finished shards of photographs are kept beside the file."""
        batch, options = self.options.batch_size, self.options
        shard = batch * max(encoding.SHARD // batch, 1)
        parts = None
        if encoder is not None:
            classes = [intake.labels.tolist(), intake.digests.tolist()]
            of = depends_on(samples, encoder.identity, shard, classes=classes)
            parts = Parts(self.store.path, of)
        where = engine(
            options.jobs, ray=options.ray, address=options.ray_address, gpus=options.gpus
        )
        with self.display.watching(), where as run_on:
            return take(
                self.model,
                samples,
                intake,
                encoder,
                run_on,
                batch_size=batch,
                shard=shard,
                parts=parts,
                say=self.say,
            )

    def clear_parts(self, samples: Samples) -> None:
        """Remove what was encoded of this folder: all of it is learned."""
        if samples.files is None or self.options.dry_run:
            return
        parts = Parts(self.store.path, depends_on(samples, {}, 0))
        if parts.are_of("images"):
            parts.remove()

    def known(self, names: NDArray[Any]) -> list[Any]:
        """Known classes of which there are samples."""
        there = set(np.unique(names).tolist())
        return sorted(label for label in self.model.classes.tolist() if label in there)

    def teach(self, result: LessonResult, lesson: dict[str, Any], encoder: Remembered) -> None:
        """Learn and write; then what was encoded for it is not needed any more."""
        model = replace(self.model, aliases={**self.model.aliases, **self.same})
        with self.display.watching():
            model = self.withholding(model.learn(**lesson))
        if encoder:
            model = replace(model, encoder=encoder)
        self.store.save(with_source(model, self.options.source.resolve().name))
        if self.what == "image":
            Parts(self.store.path, {}).remove()
        result.model = model
