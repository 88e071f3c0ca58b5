"""Shares: samples are encoded and summed a share at a time, here or by other runners.

Of a share only sums are kept, so that memory does not grow with the number of samples. Shares
depend on the samples alone, and are added up in their order: the result is the same wherever they
were summed. The features of the last share are kept until the end: taught to the sums of all
others, they show how sure answers may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from frugalvae.checks import check_finite
from frugalvae.errors import InputError
from frugalvae.images import BATCH_SIZE
from frugalvae.images.encode import Parts, complete, cut, describe, joined, resume
from frugalvae.images.listing import named
from frugalvae.images.photographs import THREADS, Encoded, Shard, encode_here
from frugalvae.interfaces import Task
from frugalvae.model import Model, Sums

if TYPE_CHECKING:
    from pathlib import PurePath

    from numpy.typing import NDArray

    from frugalvae.images.listing import Listing
    from frugalvae.images.npz import StoredRows
    from frugalvae.intake import Intake
    from frugalvae.interfaces import Encoder

LEAST, MOST = 1024, 8192  # images of a share,
MANY = 16  # of which there are about so many in between; of rows a share has the most


# --------------------------------------------------------------------------- what a share is


class ShareSource(Protocol):
    """Where the samples of a share are."""

    def read(self, encoder: Encoder | None) -> Encoded:
        """Their features."""
        ...


@dataclass(frozen=True)
class Photographs:
    """Images to encode; with ``parts``, what is finished is kept on disk."""

    shards: Sequence[Shard]
    batch_size: int
    threads: int
    parts: Parts | None = None

    def read(self, encoder: Encoder | None) -> Encoded:
        """Features of those that can be read."""
        assert encoder is not None
        made: Encoder = encoder

        def run(shards: Sequence[Shard]) -> Iterator[tuple[Shard, Encoded]]:
            return encode_here(shards, made, self.batch_size, self.threads)

        if self.parts is not None:
            return complete(self.parts, self.shards, run)
        return joined(self.shards, {shard.number: done for shard, done in run(self.shards)})


@dataclass(frozen=True)
class Rows:
    """Some rows of features, in memory or in a feature file."""

    table: NDArray[np.float32] | StoredRows
    rows: NDArray[np.int64]

    def read(self, encoder: Encoder | None) -> Encoded:
        """These rows."""
        return Encoded(
            check_finite(self.table[self.rows], self.rows), np.arange(len(self.rows)), {}
        )


@dataclass(frozen=True)
class Share:
    """Some samples.

    Attributes
    ----------
    source
        Where they are.
    classes
        The class of each, as a position in a list of labels.
    kept
        Whether their features are wanted, instead of their sums.
    """

    source: ShareSource
    classes: NDArray[np.int64]
    kept: bool = False


@dataclass(frozen=True)
class SummedShare:
    """What came of a share: sums, or features; and which samples could be read."""

    memory: Any
    encoded: Encoded


@dataclass(frozen=True)
class Work:
    """What is done with each share, wherever it is.

    Attributes
    ----------
    encoder
        What encodes images.
    memory
        A memory of the kind whose sums are wanted.
    rooted
        Whether its features are roots, if that is decided.
    """

    encoder: Encoder | None
    memory: Any
    rooted: bool | None = None

    def __call__(self, share: Share) -> SummedShare:
        """Encode a share, and sum it."""
        return self.sum(share, share.source.read(self.encoder))

    def sum(self, share: Share, done: Encoded) -> SummedShare:
        """Sum a share that is encoded."""
        if share.kept or not len(done.places):
            return SummedShare(None, done)
        task = Task(check_finite(done.features), share.classes[done.places])
        return SummedShare(
            self.memory.summed(task, self.rooted), replace(done, features=done.features[:0])
        )


#: Does the work of all shares, and gives what came of each in their order.
Runner = Callable[[Sequence[Share], Work], Iterator[SummedShare]]


def share_count(samples: int) -> int:
    """How many shares of images there are.

    >>> [share_count(n) for n in (1, 1_024, 10_000, 100_000, 1_000_000)]
    [1, 1, 10, 16, 123]
    """
    return max(1, -(-samples // min(max(-(-samples // MANY), LEAST), MOST)))


def row_share_count(rows: int) -> int:
    """How many shares of rows there are, which need no encoding.

    >>> [row_share_count(n) for n in (1, 8_192, 100_000)]
    [1, 1, 13]
    """
    return max(1, -(-rows // MOST))


def mixed(samples: int, count: int) -> NDArray[np.int64]:
    """An order in which each share has samples of all classes, where these follow each other.

    >>> mixed(5, 1).tolist(), mixed(5, 2).tolist()
    ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3])
    """
    return np.concatenate([np.arange(first, samples, count) for first in range(count)])


class Lot:
    """The samples of an intake, in the order in which they are summed in so many shares.

    Attributes
    ----------
    rows
        Where each sample is in what the intake was chosen of.
    classes, positions
        All labels, and which of them each sample has.
    """

    def __init__(self, intake: Intake, count: int) -> None:
        self.intake, self.count = intake, count
        self.order = mixed(len(intake.rows), count)
        self.rows = intake.rows[self.order]
        self.classes, positions = np.unique(intake.labels, return_inverse=True)
        self.positions = positions[self.order]

    def counts(self, taken: Taken) -> dict[Any, int]:
        """How many samples of each class could be read."""
        return dict(Counter(self.intake.labels[self.order[taken.places]].tolist()))

    def lesson(self, taken: Taken, text: Mapping[Any, Any] | None) -> dict[str, Any]:
        """What :meth:`frugalvae.model.Model.learn` takes of those; ``text`` is of new classes."""
        digests = self.intake.digests_of(self.order[taken.places])
        known = None if text is None else {y: text[y] for y in self.intake.new if y in digests}
        return {**taken.of(self.classes), "digests": digests, "text": known}


def photograph_shares(shards: Sequence[Shard], lot: Lot, **how: Any) -> list[Share]:
    """Shares of images that are those of a lot; ``how`` as in Photographs."""
    shares, start = list[Share](), 0
    for group in np.array_split(np.arange(len(shards)), lot.count):
        own = [shards[number] for number in group.tolist()]
        end = start + sum(len(shard.files) for shard in own)
        shares += [Share(Photographs(own, **how), lot.positions[start:end])] if own else []
        start = end
    return shares


def row_shares(
    table: NDArray[np.float32] | StoredRows,
    rows: NDArray[np.int64],
    classes: NDArray[np.int64],
    count: int,
) -> list[Share]:
    """So many shares of rows that are in the order of :func:`mixed`."""
    groups = zip(np.array_split(rows, count), np.array_split(classes, count), strict=True)
    return [Share(Rows(table, some), of_them) for some, of_them in groups]


# --------------------------------------------------------------------------- all shares together


@dataclass(frozen=True)
class Taken:
    """What all shares came to.

    Attributes
    ----------
    features, classes
        Of the samples that were not summed, and the class of each.
    sums
        Of all others, by the same classes; None if there are none.
    places, reasons
        Where samples are that could be read; and why others cannot be.
    """

    features: NDArray[np.float32]
    classes: NDArray[np.int64]
    sums: Any
    places: NDArray[np.int64]
    reasons: dict[int, str]

    def of(self, labels: NDArray[Any]) -> dict[str, Any]:
        """What :meth:`frugalvae.model.Model.learn` takes, with these labels of classes."""
        sums = None if self.sums is None else Sums(labels, self.sums, self.sums.counts_)
        return {"X": self.features, "y": labels[self.classes], "sums": sums}


def adds_up(model: Model) -> bool:
    """Whether a model can be taught sums alone."""
    parts = model.recipe.parts() if model.memory is None else (model.memory, model.head)
    return hasattr(parts[0], "summed") and getattr(parts[1], "needs_density", False)


def take(shares: Sequence[Share], model: Model, encoder: Encoder | None, runner: Runner) -> Taken:
    """Encode and sum all shares; features are kept of the last one, or of all if need be."""
    adds = adds_up(model)
    shares = [replace(s, kept=not adds) for s in shares[:-1]] + [replace(shares[-1], kept=True)]
    total = model.recipe.parts()[0] if adds else None
    rooted = getattr(model.memory, "rooted_", None)
    work = Work(encoder, total, rooted)
    kept, classes, places, start = list[Any](), list[Any](), list[Any](), 0
    reasons: dict[int, str] = {}
    for share, outcome in zip(shares, runner(shares, work), strict=True):
        done = outcome.encoded
        if outcome.memory is not None:
            _add(total, outcome.memory, share, replace(work, rooted=rooted))
            rooted = outcome.memory.rooted_ if rooted is None else rooted
        elif len(done.places):
            kept.append(done.features)
            classes.append(share.classes[done.places])
        places.append(done.places + start)
        reasons |= {place + start: why for place, why in done.reasons.items()}
        start += len(share.classes)
    summed = total if adds and total is not None and total.classes else None
    return Taken(
        np.concatenate(kept) if kept else np.empty((0, _width(model, summed)), np.float32),
        np.concatenate([np.empty(0, np.int64), *classes]),
        summed,
        np.concatenate(places),
        reasons,
    )


def _add(total: Any, part: Any, share: Share, work: Work) -> None:
    """Add the sums of a share; one that took features for something else is summed again."""
    if work.rooted is not None and part.rooted_ != work.rooted:
        part = work(share).memory
    total.merge(part, {number: number for number in part.classes})


def _width(model: Model, summed: Any) -> int:
    if model.n_features or summed is None:
        return model.n_features
    return len(next(iter(summed.means_.values())))


def here(shares: Sequence[Share], work: Work) -> Iterator[SummedShare]:
    """One share after the other, in this process."""
    return map(work, shares)


# --------------------------------------------------------------------------- photographs


@dataclass(frozen=True)
class TakenPhotographs:
    """What the photographs of an intake came to.

    Attributes
    ----------
    lesson, counts
        What :meth:`frugalvae.model.Model.learn` takes of those that could be read, and how many
        of each class these are.
    paths, reasons
        Where all of them are; and why some cannot be read, by their place in that list.
    missing
        New classes of which none can be read.
    """

    lesson: dict[str, Any]
    counts: dict[Any, int]
    paths: Sequence[PurePath]
    reasons: dict[int, str]
    missing: list[Any]

    @property
    def unreadable(self) -> dict[str, str]:
        """Why some cannot be read, by their paths."""
        return {str(self.paths[place]): why for place, why in self.reasons.items()}

    @property
    def lines(self) -> str:
        """Those that cannot be read, for people."""
        return "\n".join(named(self.unreadable))

    def check_new(self, folder: str) -> None:
        """Refuse a folder of new classes if nothing at all can be read."""
        if self.missing and not self.counts:
            raise InputError(f"{folder}: no image of a new class can be read:\n{self.lines}")


def take_photographs(
    model: Model,
    found: Listing,
    intake: Intake,
    encoder: Encoder,
    runner: Runner = here,
    *,
    shard: int = BATCH_SIZE,
    parts: Parts | None = None,
    say: Callable[[str], object] = lambda _: None,
    **how: Any,
) -> TakenPhotographs:
    """Encode and sum the photographs of an intake, which counts unreadable ones no more.

    Parameters
    ----------
    shard
        How many are encoded and written at a time.
    parts
        Where finished shards are kept, if anywhere; ``say`` is told what is there already.
    how
        As in :class:`Photographs`.
    """
    new = sorted(intake.new)
    text = describe(encoder, new) if new else None  # or refuse a name beforehand
    lot = Lot(intake, share_count(len(intake.rows)))
    images = found.at(lot.rows)
    shards = cut(images.files, shard)
    if parts is not None:
        resume(parts, shards, say)
    how = {"batch_size": BATCH_SIZE, "threads": THREADS, "parts": parts} | how
    taken = take(photograph_shares(shards, lot, **how), model, encoder, runner)
    intake.leave_out(intake.labels[lot.order[list(taken.reasons)]].tolist())
    counts = lot.counts(taken)
    missing = [label for label in new if label not in counts]
    lesson = lot.lesson(taken, text)
    return TakenPhotographs(lesson, counts, images.paths, taken.reasons, missing)
