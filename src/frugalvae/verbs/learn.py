"""Learn: what is new of some samples, or of some names, is taught to a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frugalvae.care.lists import refuse_guesses
from frugalvae.encoders import Choice, check_same, load_encoder
from frugalvae.encoding import Encode, Parts, depends_on, encode_and_sum
from frugalvae.engines import Engine, run_in_process
from frugalvae.errors import InputError, suggestion
from frugalvae.formatting import plural, quoted, shortened
from frugalvae.images import BATCH_SIZE
from frugalvae.labels import check_case
from frugalvae.model.naming import read_names, teach_names, unread
from frugalvae.model.plan import TeachingPlan, choose_samples
from frugalvae.samples import Samples, refuse

if TYPE_CHECKING:
    from frugalvae.model.model import Model

#: What new names mean: which are to be left out, and which are known classes, by their names.
Meant = tuple[Collection[str], dict[str, Any]]


def as_new(_: Sequence[str]) -> Meant:
    """All of them are new classes."""
    return (), {}


@dataclass
class Lesson:
    """What a lesson came to.

    Attributes
    ----------
    model
        What is known afterwards: the very model that was given, if nothing changed.
    plan
        What was to be taught, and what was not, and why.
    learned
        Samples by class that were taught.
    known
        Classes that were there and are known.
    unreadable, missing
        Photographs that cannot be read, with the reason; and new classes of which none can.
    skipped, assumed
        Other files that were not read, with the reason; and what was assumed of folders.
    excepted
        Samples that are left out because a list names them.
    """

    model: Model
    plan: TeachingPlan = field(default_factory=TeachingPlan)
    learned: dict[Any, int] = field(default_factory=dict)
    known: list[Any] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    excepted: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        model = self.model
        return {
            "learned": {str(label): self.learned[label] for label in sorted(self.learned)},
            "known": self.known,
            "unreadable": self.unreadable,
            "left_out": self.missing,
            "excepted": self.excepted,
            "skipped": self.skipped,
            "assumed": self.assumed,
            **self.plan.to_json(),
            "classes": len(model.classes),
            "expected": model.forecast.to_json() if model.forecast else None,
            "encoder": model.remembered,
        }


def learn(
    model: Model,
    samples: Samples,
    choice: Choice,
    file: Path | str,
    *,
    again: Collection[str] = (),
    only: Literal["new", "known"] | None = None,
    leave_out: Collection[str] = (),
    meant: Callable[[Sequence[str]], Meant] = as_new,
    case_matters: bool = True,
    strict: bool = False,
    dry_run: bool = False,
    engine: Engine = run_in_process,
    batch_size: int = BATCH_SIZE,
    place: Path | None = None,
    load: Any = load_encoder,
    say: Callable[..., object] = lambda *_: None,
) -> Lesson:
    """Teach a model the samples that it was not taught.

    Parameters
    ----------
    samples
        As :func:`frugalvae.samples.open_samples` gives them, still open.
    choice, file
        The encoder that was asked for, and what errors call the classifier.
    again
        Names of classes to teach although they were forgotten, renamed, or taught without digests.
    only
        Only new classes, or only known ones.
    leave_out
        Names of samples to leave out, from now on.
    meant
        Says what new names mean.
    case_matters
        Whether names that differ only in upper and lower case are different classes.
    strict
        Refuse if a file cannot be read or is no image.
    dry_run
        Find out what would be taught, and teach nothing.
    engine, batch_size
        Where photographs are encoded, and how many at a time.
    place
        Where what is encoded is kept until the model is saved there: a killed call goes on.
    load
        What loads the encoder.
    say
        Is told, a line each, what is going to be taught and what is left out.
    """
    if samples.files is None:
        check_same(model.remembered, samples.made_by, file, samples.name)
    excepted = np.isin(np.array(samples.names, object), np.array(list(leave_out), object))
    gone, samples = (samples.at(np.flatnonzero(rows)) for rows in (excepted, ~excepted))
    withheld = gone.digests("reading what is left out") if len(gone) else None

    def withholding(model: Model) -> Model:
        """With what was left out of classes that are known."""
        for name in np.unique(gone.labels).tolist() if withheld is not None else ():
            label = model.aliases.get(str(name), name)
            if label is not None and withheld is not None:
                model = model.withholding({label: withheld[gone.labels == name]})
        return model

    names = np.unique(samples.labels).tolist()
    refuse_absent(model, names, again, samples.name)
    known = [str(label) for label in model.classes.tolist()]
    new = [
        str(name) for name in names if str(name) not in {*known, *(set(model.aliases) - {*again})}
    ]
    refuse_guesses(new)
    if not case_matters:
        check_case(new, known)
    leave, same = ((), {}) if only == "known" else meant(new)
    plan = choose_samples(
        model,
        samples.labels,
        lambda rows: samples.at(rows).digests(),
        again=again,
        only=only,
        leave=leave,
        same=same,
        what=samples.what,
    )
    say(*plan.taught, *plan.left_out)
    there = sorted(label for label in model.classes.tolist() if label in set(names))
    lesson = Lesson(model, plan, known=there, skipped=samples.skipped, assumed=samples.notes)
    lesson.excepted = gone.names
    if strict:
        samples.at(plan.rows).refuse_unreadable()
    if not len(plan.rows) or dry_run:
        if dry_run:
            leave_out_unreadable(lesson, samples)
        else:
            lesson.model = only_withheld(model, withholding(model))
            remove_parts(place, samples)
        return lesson
    encoder, remembered = samples.encoder(model.remembered, choice, file, load)
    parts = None
    if encoder is not None and place is not None:
        classes = [plan.labels.tolist(), plan.digests.tobytes().hex()]
        size = Encode(encoder, batch_size).part_size
        parts = Parts(place, depends_on(samples, encoder.identity, size, classes=classes), say)
    how: dict[str, Any] = {"batch_size": batch_size, "parts": parts}
    summed = encode_and_sum(model, samples, plan, encoder, engine, **how)
    lesson.unreadable, lesson.missing = summed.unreadable, summed.missing
    if strict:
        refuse(summed.unreadable)
    if not summed.counts:
        remove_parts(place, samples)
    summed.check_new(samples.name)
    if summed.counts:
        renamed = replace(model, aliases={**model.aliases, **same})
        taught = withholding(renamed.learn(**summed.lesson))
        lesson.model = replace(taught, encoder=remembered) if remembered else taught
        lesson.learned = summed.counts
    return lesson


def refuse_absent(model: Model, names: Sequence[Any], again: Collection[str], where: str) -> None:
    """Refuse to teach a class again of which there is nothing."""
    there = [str(name) for name in names]
    labels = [str(model.aliases.get(name, name)) for name in there]
    for name in again:
        if name not in {*there, *labels}:
            raise InputError(
                f"--again {quoted(name)}: {where} has no class of this name."
                f"{suggestion(name, there)} It has {shortened(there)}"
            )


def leave_out_unreadable(lesson: Lesson, samples: Samples) -> None:
    """Nothing is going to be encoded: see which samples of known classes can be read."""
    plan = lesson.plan
    more = np.flatnonzero(np.isin(plan.labels, list(plan.more)))
    samples = samples.at(plan.rows[more])
    lesson.unreadable = samples.unreadable()
    lost = [name in lesson.unreadable for name in samples.names]
    plan.leave_out(plan.labels[more][lost].tolist())


def only_withheld(before: Model, after: Model) -> Model:
    """Nothing was taught: the model with what is left out from now on, or as it was."""
    more = {
        label: len(after.withheld.get(number, ())) - len(before.withheld.get(number, ()))
        for label, number in after.number_of.items()
    }
    more = {label: count for label, count in more.items() if count > 0}
    return after.recorded("leave out", more) if more else before


def remove_parts(place: Path | None, samples: Samples) -> None:
    """Remove what was encoded of these photographs before: all of them are learned."""
    if place is not None and samples.files is not None:
        parts, images = Parts(place, {}), depends_on(samples, {}, 0)["images"]
        if parts.there() and parts.before().get("images", images) == images:
            parts.remove()


# --------------------------------------------------------------------------- by name


def learn_names(
    model: Model,
    names: Sequence[str],
    choice: Choice,
    file: Path | str,
    *,
    again: Collection[str] = (),
    meant: Callable[[Sequence[str]], Meant] = as_new,
    case_matters: bool = True,
    dry_run: bool = False,
    say: Callable[..., object] = lambda *_: None,
) -> Lesson:
    """Teach a model classes by their names alone; the encoder must read. As :func:`learn`."""
    aliases = {name: y for name, y in model.aliases.items() if name not in again}
    aliases |= {str(label): label for label in model.classes.tolist()}
    known = {name: aliases[name] for name in names if aliases.get(name) is not None}
    new = [name for name in names if name not in known]
    if not case_matters:
        check_case(new, map(str, model.classes.tolist()))
    leave, same = meant(new)
    new = [name for name in new if name not in {*leave, *same}]
    known |= same
    if known:
        say(f"{plural(len(known), 'class')} known already: {shortened(sorted(known))}")
    if new:
        say(f"{plural(len(new), 'new class')} by name alone: {shortened(new)}")
    lesson = Lesson(model, known=sorted(set(known.values()), key=str))
    if new and not dry_run:
        encoder, remembered = load_encoder(model.remembered, choice, file)
        taught = teach_names(model, read_names(encoder, [*new, *unread(model)]))
        lesson.model, lesson.learned = replace(taught, encoder=remembered), dict.fromkeys(new, 0)
    return lesson
