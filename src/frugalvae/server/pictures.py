"""Pictures of a class, encoded, and what a model becomes that is taught them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.digests import DIGEST, among
from frugalvae.encoding import describe
from frugalvae.errors import InputError
from frugalvae.labels import check_case, like, near
from frugalvae.model.forgetting import forget, unlearn
from frugalvae.model.history import (
    as_one_lesson,
    digest_of,
    is_last_change,
    with_digest,
    with_source,
)
from frugalvae.model.neighbours import CONFUSED
from frugalvae.model.plan import Intake, choose_samples, taught_digests
from frugalvae.parts.checks import check_kind
from frugalvae.server.asking import check_some
from frugalvae.server.looking import Seen

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.server.reading import Sent
    from frugalvae.server.served import Snapshot
    from frugalvae.server.state import ServerState

SOURCE = "the page or HTTP"  # in the history
ONE_NAME = "give both the same name if they are one class, or a name of its own"


@dataclass
class ClassPictures:
    """Pictures of one class, encoded.

    Attributes
    ----------
    x, digests
        Features (n, d), and what tells each picture from others.
    unreadable
        Why others cannot be read.
    moved, gone
        Pictures by class that were taken out there; and classes that had no others.
    warnings
        What did not go as it should.
    """

    name: str
    x: NDArray[np.float32]
    digests: NDArray[np.bytes_]
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    moved: dict[str, int] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def gather(server: ServerState, sent: Sent, name: str) -> ClassPictures:
    """The pictures of a request: those that came with it, and those that are remembered."""
    snapshot = await server.served.refresh()
    model = snapshot.model if snapshot else None
    questions = server.find(sent.ids(), model)
    if not questions:
        check_some(sent.uploads)
    remembered = model.remembered if model else {}
    jobs = [
        server.looker.run(lambda c=upload.content: server.looker.look(c, remembered, small=False))  # type: ignore[misc]
        for upload in sent.uploads
    ]
    seen, unreadable = [question.seen for question in questions], []
    for upload, found in zip(sent.uploads, await asyncio.gather(*jobs), strict=True):
        if isinstance(found, Seen):
            seen.append(found)
            if server.settings.keep:
                await server.looker.run(lambda c=upload.content, d=found.digest: server.keep(c, d))  # type: ignore[misc]
        else:
            unreadable.append({"input": upload.name, "reason": found})
    if not seen:
        server.refuse_unreadable(unreadable)
    features = np.stack([one.features for one in seen])  # (n, d)
    digests = np.array([one.digest for one in seen], DIGEST)
    return ClassPictures(name, features, digests, unreadable)


def learned(
    server: ServerState, model: Model, pictures: ClassPictures, case_matters: bool
) -> tuple[Any, Model, Intake]:
    """The model with those of the pictures that are new; itself if none is."""
    label = meant(model, pictures.name, case_matters)
    names = np.array([label] * len(pictures.x))
    intake = choose_samples(model, names, lambda rows: pictures.digests[rows], again=[str(label)])
    if not len(intake.rows):
        return label, model, intake
    eye = server.looker.eye(model.remembered)
    described = describe(eye.encoder, [str(label)]) if intake.new else None
    text = described and {label: described[str(label)]}
    x, digests = pictures.x[intake.rows], intake.digests
    before, emptied = taken_out(model, label, x, digests, pictures)
    after = before.learn(x, intake.labels, text=text, digests={label: digests})
    for other in emptied:
        after, _ = forget(after, other)
    pictures.gone = [str(other) for other in emptied]
    after = as_one_lesson(model, after, pictures.moved, pictures.gone)
    if not after.encoder:
        after = replace(after, encoder=eye.remembered)
    return label, with_source(after, SOURCE), intake


def meant(model: Model, name: str, case_matters: bool) -> Any:
    """The label that a name stands for: of a class that is known, was renamed, or is new."""
    known = model.classes.tolist()
    label: Any = like(known[0], name) if known else name
    if label not in known:
        alias = model.aliases.get(name)  # which may be 0
        label = label if alias is None else alias
    if known:
        check_kind(np.array([label]), model.classes)
    if label not in known and not case_matters:
        check_case([str(label)], map(str, known), ONE_NAME)
    return label


def taken_out(
    model: Model,
    label: Any,
    x: NDArray[np.float32],
    digests: NDArray[np.bytes_],
    pictures: ClassPictures,
) -> tuple[Model, list[Any]]:
    """Without pictures that other classes were taught; and classes that had no others.

    Who teaches a picture as another class says that it was wrong before. Memories that cannot take
    samples out keep it.
    """
    emptied = []
    for other in model.classes.tolist():
        wrong = among(digests, taught_digests(model, other))
        count = int(wrong.sum())
        if other == label or not count:
            continue
        if count == model.n_samples_of_class[model.classes == other][0]:
            emptied.append(other)
        else:
            try:
                model = unlearn(model, other, x[wrong], digests=digests[wrong])
            except InputError as error:
                pictures.warnings.append(f"{count} of them stay in {other}, too: {error}")
                continue
        pictures.moved[str(other)] = count
    return model, emptied


def updated(
    server: ServerState, model: Model, pictures: ClassPictures
) -> tuple[Any, Model, Intake]:
    """The model with more of a known class; itself if the last change was this very one."""
    label = server.served.label_named(model, pictures.name)
    digest = digest_of(label, pictures.x)
    if is_last_change(model, digest):
        return label, model, Intake(already={label: len(pictures.x)})
    after = model.update(label, pictures.x, digests=pictures.digests)
    after = with_digest(with_source(after, SOURCE), digest)
    return label, after, Intake(rows=np.arange(len(pictures.x)), more={label: len(pictures.x)})


def outcome(
    server: ServerState,
    label: Any,
    before: Model,
    size: int,
    snapshot: Snapshot | None,
    intake: Intake,
    pictures: ClassPictures,
) -> dict[str, Any]:
    """What came of teaching them."""
    assert snapshot is not None
    model, known = snapshot.model, before.classes.tolist()
    place = model.classes.tolist().index(label)
    samples = int(model.n_samples_of_class[place])
    others = [str(other) for other in known if other != label]
    expected = model.forecast.to_json()["intervals"] if model.forecast else {}
    return {
        "label": label,
        "new": label not in known,
        "learned": len(intake.rows),
        "already": sum(intake.already.values()),
        "copies": sum(intake.copies.values()),
        "moved": pictures.moved,
        "gone": pictures.gone,
        "unreadable": pictures.unreadable,
        "near": near(str(label), others) if label not in known else None,
        "before": {"bytes": size, "classes": len(known)},
        "after": {"bytes": server.served.size, "classes": len(model.classes), "samples": samples},
        "confused": confused_with(snapshot, label),
        "interval": expected.get(str(label)),
        "warnings": [*pictures.warnings, *snapshot.summary.warnings],
        "revision": snapshot.revision,
    }


def confused_with(snapshot: Snapshot, label: Any) -> list[dict[str, Any]]:
    """Classes that one is taken for, most often first."""
    nearest = snapshot.neighbours_of(label)
    return [
        {"label": near.label, "share": near.share} for near in nearest if near.share >= CONFUSED
    ]
