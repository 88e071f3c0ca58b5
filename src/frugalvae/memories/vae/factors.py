"""VAE-factors: the incremental VAE with all of our additions on, and smaller networks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from frugalvae.memories.vae.memory import VAEMemory
from frugalvae.memories.vae.settings import VAESettings


@dataclass(frozen=True, kw_only=True)
class FactorSettings(VAESettings):
    """Settings with other defaults: whitened, class directions, a small decoder that is taught.

    >>> FactorSettings().whitened
    True
    """

    whitened: bool = True
    factors: int = 4
    directions: int = 8
    share: float = 0.15
    hidden: int = 256
    latent: int = 128
    batch_size: int = 256
    max_steps: int = 200
    learning_rate: float = 2e-3
    later_learning_rate: float = 2e-3


class FactorVAEMemory(VAEMemory):
    """An incremental VAE in whitened coordinates, with class directions.

    Parameters
    ----------
    **settings
        See :class:`FactorSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> from frugalvae.interfaces import Task
    >>> rng = np.random.default_rng(0)
    >>> memory = FactorVAEMemory(hidden=16, latent=4, epochs=5)
    >>> x = rng.normal(size=(20, 8)) + 9 * (np.arange(20)[:, None] % 2)
    >>> memory.learn(Task(x, np.arange(20) % 2), rng)
    >>> memory.log_density(x[:4]).argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """

    __signature__ = inspect.signature(FactorSettings)
    settings_type = FactorSettings
