"""Heads: what classifies among the classes that were taught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugalvae.parts.registry import Registry

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head

#: Every head of ours by name.
HEADS = Registry(
    "head",
    {
        "cosine": ("frugalvae.heads.cosine:CosineHead", {}),
        "prompt": ("frugalvae.heads.prompt:PromptHead", {}),
        "ridge": ("frugalvae.heads.ridge:RidgeHead", {}),
        "bayes": ("frugalvae.heads.bayes:BayesHead", {}),
        "nearest-mean": ("frugalvae.heads.nearest_mean:NearestMeanHead", {}),
        "lda": ("frugalvae.heads.lda:StreamingLDAHead", {}),
    },
    group="frugalvae.heads",
    laboratory=(
        *("acil", "anacp", "fecam", "fly-cl", "gacl", "klda", "klda-e", "knn", "logistic"),
        *("lr-rgda", "randumb", "ranpac", "svm"),
    ),
    attributes=("classes", "needs_every_task"),
    methods=(
        *("learn", "logits", "register"),
        *("update", "forget", "arrays", "components"),
    ),
    defaults="frugalvae.heads.defaults.HeadDefaults",
)


def make_head(name: str, **settings: Any) -> Head:
    """The head of that name, with any of its settings changed.

    A name of ours, of an installed package, or ``module:Class``.

    >>> make_head("cosine", epochs=5).epochs
    5
    """
    return HEADS.make(name, settings, trust=[name])
