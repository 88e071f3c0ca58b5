"""Memories: what is kept of the classes that were taught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugalvae.parts.registry import Registry

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Head, Memory


VAE = "frugalvae.paper.variants:VAEMemory"
LITERAL = "frugalvae.paper.variants:LiteralVAEMemory"

#: Every memory of ours by name, and the settings that make it.
MEMORIES = Registry(
    "memory",
    {
        "vae-fo": (VAE, {}),
        "vae-fod": (VAE, {"dynamic": True}),
        "vae-fodce": (VAE, {"dynamic": True, "embedding": 10}),
        "vae-ceo": (VAE, {"prior": "single", "embedding": 10}),
        "vae-fo-literal": (LITERAL, {}),
        "vae-fod-literal": (LITERAL, {"dynamic": True}),
        "vae-fodce-literal": (LITERAL, {"dynamic": True, "embedding": 10}),
        "vae-ceo-literal": (LITERAL, {"prior": "single", "embedding": 10}),
        "vae-cgil": ("frugalvae.paper.cgil:ClassVAEMemory", {}),
        "gaussian-diagonal": (
            "frugalvae.parts.gaussian:GaussianMemory",
            {"covariance": "diagonal"},
        ),
        "gaussian-shared": ("frugalvae.parts.gaussian:GaussianMemory", {"covariance": "shared"}),
        "gaussian-full": ("frugalvae.parts.gaussian:GaussianMemory", {"covariance": "full"}),
        "moments": ("frugalvae.moments.memory:MomentMemory", {}),
        "store-all": ("frugalvae.parts.store_all:StoreAllMemory", {}),
        "none": ("frugalvae.parts.store_all:NoMemory", {}),
    },
    group="frugalvae.memories",
    laboratory=("factors", "fetril", "mixture"),
    attributes=("classes",),
    methods=("learn", "sample", "update", "forget", "arrays", "components"),
    defaults="frugalvae.parts.defaults.MemoryDefaults",
)


def usual_head(memory: str | type | Memory) -> str:
    """The default head of a memory, everywhere: ``usual_head`` of its class, or cosine.

    >>> usual_head("moments"), usual_head("vae-fo")
    ('bayes', 'cosine')
    """
    if isinstance(memory, str):
        memory = MEMORIES.part(memory, trust=[memory])
    kind = memory if isinstance(memory, type) else type(memory)
    return getattr(kind, "usual_head", "cosine")


def make_memory(name: str, **settings: Any) -> Memory:
    """The memory of that name, with any of its settings changed.

    A name of ours, of an installed package, or ``module:Class``: the caller's own choice, so it is
    imported.

    >>> make_memory("vae-fod", epochs=20).settings.dynamic
    True
    >>> make_memory("vae-f0")
    Traceback (most recent call last):
    ...
    frugalvae.errors.UnknownNameError: there is no memory 'vae-f0'. Did you mean 'vae-fo'? ...
    """
    return MEMORIES.make(name, settings, trust=[name])


# Heads: what classifies among the classes that were taught.


#: Every head of ours by name.
HEADS = Registry(
    "head",
    {
        "cosine": ("frugalvae.parts.cosine:CosineHead", {}),
        "prompt": ("frugalvae.paper.prompts:PromptHead", {}),
        "ridge": ("frugalvae.parts.closed_form:RidgeHead", {}),
        "bayes": ("frugalvae.parts.bayes:BayesHead", {}),
        "nearest-mean": ("frugalvae.parts.closed_form:NearestMeanHead", {}),
        "lda": ("frugalvae.parts.closed_form:StreamingLDAHead", {}),
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
    defaults="frugalvae.parts.defaults.HeadDefaults",
)


def make_head(name: str, **settings: Any) -> Head:
    """The head of that name, with any of its settings changed.

    A name of ours, of an installed package, or ``module:Class``.

    >>> make_head("cosine", epochs=5).epochs
    5
    """
    return HEADS.make(name, settings, trust=[name])
