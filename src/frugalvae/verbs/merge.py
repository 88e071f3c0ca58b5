"""Merge: files that were taught apart become one, each counted once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from frugalvae.encoders import check_carried
from frugalvae.errors import InputError
from frugalvae.formatting import plural, printable
from frugalvae.labels import as_label, check_case, label_named, like
from frugalvae.model import merging
from frugalvae.model.history import is_last_change, with_digest
from frugalvae.model.model import Model
from frugalvae.storage.store import Store, checksum_of

OF = "of"  # the checksum of a file that was merged, in its event of the history


@dataclass(frozen=True)
class Addition:
    """A file to be added: its name, the checksum of its bytes, and other labels for classes."""

    path: Path
    checksum: str
    model: Model
    rename: dict[Any, Any]

    @property
    def labels(self) -> list[Any]:
        """Its classes as they are going to be called."""
        return [self.rename.get(label, label) for label in self.model.classes.tolist()]

    @property
    def age(self) -> tuple[str, str]:
        """Sorts files by when they were first taught, whatever the order they were given in."""
        first = self.model.history[0] if self.model.history else {}
        return str(first.get("when", "")), self.checksum


@dataclass
class Added:
    """What a file added: its new and known classes, and all of its samples.

    >>> str(Added("b.frugal", ["wren"], ["emu"], 24))
    'b.frugal: 24 samples of 1 new class and 1 known class'
    """

    file: str
    new: list[str]
    known: list[str]
    samples: int

    def __str__(self) -> str:
        kinds = {"new class": self.new, "known class": self.known}
        parts = [plural(len(names), kind) for kind, names in kinds.items() if names]
        return f"{self.file}: {plural(self.samples, 'sample')} of {' and '.join(parts)}"


@dataclass
class Merged:
    """What came of a merge: the file as it is now, and what each file added, if anything did."""

    file: str
    merged: list[Added]
    classes: int
    samples: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def merge(
    store: Store,
    others: Sequence[Path],
    *,
    rename: Mapping[Path, Sequence[str]] | None = None,
    twice: bool = False,
    case_matters: bool = False,
    trust: Collection[str] = (),
) -> Merged:
    """Merge all files into the store's, or none of them; it is made if it does not exist.

    Parameters
    ----------
    store
        Whoever calls holds its lock.
    rename
        Other names for classes of a file, each as ``CLASS=NAME``.
    twice
        Add what was added before, or shares photographs: it counts twice.
    trust
        What the files may name.
    """
    additions = []
    for path in others:
        added = Store(path, trust=trust)
        model = added.load()
        texts = (rename or {}).get(path, ())
        names = dict(new_name(path, text, model.classes.tolist()) for text in texts)
        additions.append(Addition(path, checksum_of(added.path), model, names))
    additions.sort(key=lambda addition: addition.age)
    identity = [(addition.checksum, addition.labels) for addition in additions]
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
    before, results = store.load(empty=True) if store.exists else None, list[Added]()
    after = before
    if before is None or twice or not is_last_change(before, digest):  # a killed one is repeated
        if not twice:
            refuse_twice(store, before, additions)
        after = before or Model(additions[0].model.recipe)
        for addition in additions:
            after, result = add(store, after, addition, twice, case_matters, trust)
            results.append(result)
        store.save(with_digest(after, digest))
    assert after is not None
    samples, taken = int(after.n_samples_of_class.sum()), store.path.stat().st_size
    return Merged(str(store.given), results, len(after.classes), samples, taken)


def new_name(path: Path, text: str, labels: list[Any]) -> tuple[Any, Any]:
    """``wren=house wren`` as the label in the file and the new one; names may have a ``=``."""
    known = set(map(str, labels))
    places = [place for place, letter in enumerate(text) if letter == "="]
    fitting = [place for place in places if as_label(text[:place]) in known]
    place = (fitting or places)[0]
    old = label_named(path, labels, text[:place])
    return old, like(old, text[place + 1 :])


def refuse_twice(store: Store, model: Model | None, additions: list[Addition]) -> None:
    """Refuse files of which one holds what another one holds."""
    held = [(addition.path, addition.checksum, addition.model) for addition in additions]
    if model is not None:
        held.insert(0, (store.given, checksum_of(store.path), model))
    parts = [
        (path, {checksum, *(str(event[OF]) for event in model.history if OF in event)})
        for path, checksum, model in held
    ]
    for place, (path, inside) in enumerate(parts):
        for other, others in parts[:place]:
            if inside & others:
                raise InputError(
                    f"{path} and {other} are the same, or hold the same file: its samples would "
                    "count twice. Nothing was changed; leave one out, or give --twice if it is "
                    "meant so"
                )


def add(
    store: Store,
    model: Model,
    addition: Addition,
    twice: bool,
    case_matters: bool,
    trust: Collection[str],
) -> tuple[Model, Added]:
    """The model with a file added, and what that file added."""
    known, labels = set(model.classes.tolist()), addition.labels
    new = [label for label in labels if label not in known]
    try:
        if not model.encoder:  # then it takes that of the other
            check_carried(addition.model.encoder, trust, addition.path)
        if not case_matters:
            check_case(map(str, new), map(str, known))
        model = merging.merge(model, addition.model, addition.rename, twice=twice)
    except InputError as error:
        raise InputError(f"{addition.path} cannot be merged into {store.given}: {error}") from error
    *before, last = model.history
    event = {**last, "source": printable(addition.path.name), OF: addition.checksum}
    old = [str(label) for label in labels if label in known]
    samples = int(addition.model.n_samples_of_class.sum())
    result = Added(str(addition.path), list(map(str, new)), old, samples)
    return replace(model, history=(*before, event)), result
