"""What a memory will cost, before it is trained. Plain arithmetic: no PyTorch."""

from __future__ import annotations

from frugalvae import cost
from frugalvae.cost import Component
from frugalvae.errors import InputError
from frugalvae.memories import MEMORIES


def plan(
    variant: str, dim: int, classes: int, tasks: int, samples: int | None = None
) -> list[Component]:
    """What a memory of the given name will cost, before it is trained.

    >>> sum(part.paper for part in plan("vae-cgil", 768, classes=100, tasks=10))
    79129600
    """
    settings = MEMORIES[variant]
    if variant in ("store-all", "fetril"):
        if samples is None:
            raise InputError(f"what {variant} costs depends on the data; give --samples N")
        if variant == "fetril":  # keeps the last task's, and tasks are taken as equal
            return cost.fetril(dim, classes, round(samples / tasks))
        return cost.store_all(dim, samples)
    if variant == "mixture":
        return cost.mixture(dim, [5] * classes)
    if variant == "factors":
        return _factors(dim, classes)
    if variant == "none":
        return []
    if variant.startswith("gaussian"):
        return cost.gaussian(settings["covariance"], dim, classes)
    if variant == "vae-cgil":
        return cost.class_vae(dim, classes)
    if variant == "vae-factors":
        return cost.vae(
            dim, classes, tasks, hidden=256, latent=128, whitened=True, factors=4, encoded=False
        )
    return cost.vae(
        dim,
        classes,
        tasks,
        own_prior=settings.get("prior") != "single",
        dynamic=settings.get("dynamic", False),
        embedding=settings.get("embedding", 0),
    )


def _factors(dim: int, classes: int, most: int = 32) -> list[Component]:
    """At the usual budget, if no class is too small for the directions that it affords."""
    budget = cost.usual_budget(dim, classes)
    rank = cost.factor_rank(budget, dim, classes)
    room = cost.factor_directions(budget, dim, classes, rank)
    return cost.factors(dim, classes, rank, min(room, classes * most))
