"""Naming: classes that are known by name alone, beside those that have samples.

Nothing is kept of such a class but its label and the text feature of its name, which the head
holds. When samples come, the memory learns it like any new class, and the name becomes a prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frugalvae.errors import InputError
from frugalvae.labels import by_label, check_label
from frugalvae.parts.checks import check_kind, check_labels, check_learned, check_named, check_text
from frugalvae.parts.protocols import Replay, Task, is_tempered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder


def teach_names(model: Model, text: Mapping[Any, ArrayLike]) -> Model:
    """A model that also knows classes by the text features of their names, {label: vector}.

    Classes that are known already keep what they know; one that was taught without a text feature
    gets it.
    """
    memory, head = model.parts()
    if not (is_tempered(memory) and getattr(head, "names", False)):
        raise InputError(
            f"{type(memory).__name__} with {type(head).__name__} cannot learn a class by its name "
            "alone; memory 'moments' with head 'bayes' can, unless it has names=False"
        )
    if not isinstance(text, Mapping) or not text:
        raise InputError(f"text is {text!r}; expected {{label: vector, ...}}, one label at least")
    text = by_label(text)
    labels = np.unique(check_labels(list(text), len(text)))
    check_kind(labels, model.classes)
    new = labels[~np.isin(labels, model.classes)]
    for label in new.tolist():
        check_label(label)
    width = model.n_features or int(np.size(next(iter(text.values()))))
    vectors = check_text(text, new, model.n_taught, width)
    for label, number in model.number_of.items():
        if label in text and number not in head.text_:  # type: ignore[attr-defined]
            vectors |= check_text(text, np.array([label]), number, width)
    if not vectors:
        return model
    about = Task(np.empty((0, width), np.float32), np.array(sorted(vectors), np.int64), vectors)
    head.register(about)
    with model.computing():
        head.learn(Task.empty(width), Replay(memory, model.recipe.generator("head", model.n_tasks)))
    check_learned(head)
    check_named(memory, head)
    learned = replace(model, memory=memory, head=head, n_features=width, head_stale=False)
    return learned.listed(new)


def read_names(encoder: Encoder, names: Sequence[str]) -> dict[str, Any]:
    """The text feature of each name, if the encoder reads."""
    found = encoder.text_features(list(names))
    if found is None:
        name = encoder.identity.get("model") or encoder.identity.get("encoder")
        raise InputError(
            f"the encoder {name} cannot read names; expected CLIP or SigLIP with both towers, such "
            "as --encoder onnx --model FOLDER. With this encoder, teach classes by their images"
        )
    return dict(zip(names, found, strict=True))


def unread(model: Model) -> list[str]:
    """Labels of taught classes that have no text feature; labels that are numbers say nothing."""
    text = getattr(model.head, "text_", {})
    return [y for y, n in model.number_of.items() if isinstance(y, str) and n not in text]
