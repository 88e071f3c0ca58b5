"""A lesson: what of a folder or a feature file is new, encoded and taught to a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.care.guesses import refuse_guesses
from frugalvae.cli.options import choice, holds_features, refuse_encoder
from frugalvae.console import Display, complain
from frugalvae.encoders.remembered import Remembered, check_carried, check_same, load_encoder
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import plural, quoted, shortened
from frugalvae.history import with_source
from frugalvae.images import encode as encoding
from frugalvae.images.encode import Parts, depends_on
from frugalvae.images.listing import counted, named, open_images, refuse
from frugalvae.images.photographs import (
    DECODERS,
    THREADS,
    digests_of,
    digests_of_rows,
    refuse_with_unreadable,
    unreadable,
)
from frugalvae.intake import Intake, choose_samples
from frugalvae.labels import check_case, near, near_pairs, nearly_known
from frugalvae.shares import (
    Lot,
    TakenPhotographs,
    here,
    row_share_count,
    row_shares,
    take,
    take_photographs,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from frugalvae.images.listing import Listing
    from frugalvae.interfaces import Encoder
    from frugalvae.model import Model
    from frugalvae.shares import Runner
    from frugalvae.storage.store import Store


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
        self.withheld: dict[str, NDArray[np.bytes_]] = {}  # by folder, as --except says

    def run(self) -> LessonResult:
        """Teach what is new, with a line for all that is left out."""
        options = self.options
        if options.names is not None:
            from frugalvae.cli.naming import from_names

            return from_names(self)
        if self.what == "sample":
            refuse_encoder(options, options.source)
            return self.from_features(options.source)
        names = [*map(str, self.model.classes.tolist()), *self.model.aliases]
        with open_images(options.source, "learning", depth=options.depth, known=names) as found:
            self.say(*found.notes, *counted(found.skipped))
            return self.from_folder(found)

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

    def withhold(self, names: NDArray[Any], digests: NDArray[np.bytes_]) -> None:
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

    # ------------------------------------------------------------ feature files

    def from_features(self, path: Path) -> LessonResult:
        """The training rows of a feature file."""
        from frugalvae.care.except_list import ROW
        from frugalvae.images.feature_file import open_training

        features, table = open_training(path)
        check_same(self.encoder, features.encoder, self.store.given, path)
        names: NDArray[Any] = features.y_train
        rows = [ROW.format(row) for row in range(len(names))]
        left_out = self.excepted(rows)
        kept = np.flatnonzero(~left_out)
        intake = self.choose(names[kept], lambda places: digests_of_rows(table, kept[places]))
        intake.rows = kept[intake.rows]
        self.say(*intake.grown)
        result = LessonResult(self.model, intake, known=self.known(names))
        result.excepted = [rows[row] for row in np.flatnonzero(left_out)]
        gone = np.flatnonzero(left_out)
        if len(gone):
            self.withhold(names[gone], digests_of_rows(table, gone))
        if not len(intake.rows) or self.options.dry_run:
            return self.taught_nothing(result)
        encoder = self.encoder
        if encoder == {}:  # a new file has none
            encoder = features.encoder
            check_carried(encoder, choice(self.options).named, path)
        text = features.text or {}
        lot = Lot(intake, row_share_count(len(intake.rows)))
        shares = row_shares(table, lot.rows, lot.positions, lot.count)
        with self.display.watching(), self.runner() as runner:
            taken = take(shares, self.model, None, runner)
        result.learned = lot.counts(taken)
        self.teach(result, lot.lesson(taken, text or None), encoder)
        return result

    # ------------------------------------------------------------ photographs

    def from_folder(self, found: Listing) -> LessonResult:
        """The images that are new, encoded; after a kill, from where it stopped."""
        paths = list(map(str, found.paths))
        left_out = self.excepted(paths)
        gone, found = found.at(np.flatnonzero(left_out)), found.at(np.flatnonzero(~left_out))
        if gone.files:
            self.withhold(gone.labels, digests_of(gone.files, "reading what is left out"))
        intake = self.choose(found.labels, lambda rows: digests_of(found.at(rows).files))
        result = LessonResult(self.model, intake, known=self.known(found.labels))
        result.left_out, result.notes = found.skipped, found.notes
        result.excepted = [paths[row] for row in np.flatnonzero(left_out)]
        if self.options.strict:
            with self.display.watching():
                refuse_with_unreadable(found.at(intake.rows))
        if not len(intake.rows) or self.options.dry_run:
            if self.options.dry_run:
                self.try_more(result, found)
            self.clear_parts(found)
            return self.taught_nothing(result)
        encoder, remembered = load_encoder(self.encoder, choice(self.options), self.store.given)
        taken = self.encode(found, intake, encoder)
        result.skipped, result.missing = taken.unreadable, taken.missing
        if self.options.strict:
            refuse(result.skipped)
        if not taken.counts:
            self.clear_parts(found)
        taken.check_new(found.name)
        self.name_unreadable(result)
        self.say(*intake.grown)
        result.learned = taken.counts
        if taken.counts:
            self.teach(result, taken.lesson, remembered)
        return result

    def try_more(self, result: LessonResult, found: Listing) -> None:
        """Nothing is going to be encoded: see which images of known classes can be read."""
        intake = result.intake
        more = np.flatnonzero(np.isin(intake.labels, list(intake.more)))
        images = found.at(intake.rows[more])
        with self.display.watching():
            result.skipped = unreadable(images, THREADS)
        self.name_unreadable(result)
        lost = [str(path) in result.skipped for path in images.paths]
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

    def encode(self, found: Listing, intake: Intake, encoder: Encoder) -> TakenPhotographs:
        """What the images come to; finished shards are kept beside the file."""
        batch, options = self.options.batch_size, self.options
        shard = batch * max(encoding.SHARD // batch, 1)
        classes = [intake.labels.tolist(), intake.digests.tobytes().hex()]
        of = depends_on(found, encoder.identity, shard, classes=classes)
        parts = None if self.on_ray else Parts(self.store.path, of)
        threads = THREADS if options.jobs == 1 else DECODERS
        how = {"batch_size": batch, "shard": shard, "threads": threads, "parts": parts}
        with self.display.watching(), self.runner() as runner:
            return take_photographs(self.model, found, intake, encoder, runner, say=self.say, **how)

    def clear_parts(self, found: Listing) -> None:
        """Remove what was encoded of this folder: all of it is learned."""
        parts = Parts(self.store.path, depends_on(found, {}, 0))
        if not self.options.dry_run and parts.are_of("images"):
            parts.remove()

    # ------------------------------------------------------------ what is taught

    def known(self, names: NDArray[Any]) -> list[Any]:
        """Known classes of which there are samples."""
        there = set(np.unique(names).tolist())
        return sorted(label for label in self.model.classes.tolist() if label in there)

    @property
    def on_ray(self) -> bool:
        """Whether Ray was asked for."""
        return bool(self.options.ray or self.options.ray_address)

    @contextmanager
    def runner(self) -> Iterator[Runner]:
        """What encodes and sums: this process, several, or Ray, which is stopped afterwards."""
        options = self.options
        if not self.on_ray and options.jobs == 1:
            yield here
            return
        from frugalvae.runners import in_processes, on_ray

        if not self.on_ray:
            yield in_processes(options.jobs)
            return
        from frugalvae.cluster import Cluster

        with closing(Cluster(options.ray_address, jobs=options.jobs, gpus=options.gpus)) as cluster:
            yield on_ray(cluster)

    def teach(self, result: LessonResult, lesson: dict[str, Any], encoder: Remembered) -> None:
        """Learn and write; then what was encoded for it is not needed any more."""
        model = replace(self.model, aliases={**self.model.aliases, **self.same})
        with self.display.watching():
            model = self.withholding(model.learn(**lesson))
        if encoder:
            model = replace(model, encoder=encoder)
        self.store.save(with_source(model, self.options.source.resolve().name))
        if not (self.what == "sample" or self.on_ray):
            Parts(self.store.path, {}).remove()
        result.model = model
