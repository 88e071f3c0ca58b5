"""Settings of the incremental VAE: every variant and ablation of the paper is one of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.priors import Prior, make_prior
from frugalvae.maths.training import Training
from frugalvae.memories.vae.decoder import Projection, Update

Source = Literal["prior", "prior-mean", "posterior", "posterior-mean", "batch-mean"]


@dataclass(frozen=True, kw_only=True)
class VAESettings:
    """How an incremental VAE is built, trained and kept from forgetting.

    Parameters
    ----------
    prior
        Where class Gaussians stand: ``"fpi"`` (Eq. 5), ``"normal"``, ``"uniform"``,
        ``"single"`` (all at the origin), or a prior made with settings of its own.
    decoder
        What later tasks may do to shared weights: move in the ``"null-space"`` of
        what old classes feed each layer, move ``"free"``, or stay ``"frozen"``.
    classwise
        Normalise every class by itself; otherwise all alike, by the first task.
    whitened
        Normalise by class means and the covariance within classes that all share, in place
        of class-wise deviations; see :class:`frugalvae.memories.vae.normalise.WhitenedNormaliser`.
    ridge
        Its ridge.
    factors
        How many directions of its own each class adds to what the decoder makes of it;
        see :func:`frugalvae.memories.vae.directions.class_factors`.
    directions
        Teach the decoder so many directions of each class in place of training it on Eq. 6:
        where it is linear, they are what Eq. 6 would lead to. There is no encoder then. See
        :func:`frugalvae.maths.training.teach_directions`; it takes ``max_steps`` steps,
        and no more directions than there are latents.
    share
        How much of the variance that is a class's own (what is decoded, and its factors)
        its density believes in. Few samples overstate it.
    dynamic
        Give each task its own last layer and biases.
    embedding
        Length of the class embeddings appended to each layer's input; 0 for none.
    hidden, latent
        Width of the hidden layers, and of the latent space.
    epochs, batch_size, max_steps, warm_up, likelihood_std, relative
        How to train; see :class:`frugalvae.maths.training.Training`.
    learning_rate, later_learning_rate
        Adam's, for the encoder and an untrained decoder; and for a decoder that
        already knows something.
    noise
        Standard deviation of what is added to decoded samples, on the normalised
        scale. ``"match"`` takes what they lack of the spread of the class.
    inputs
        What the null space must protect: layer inputs made from latents drawn
        from the ``"prior"`` (what replay feeds the decoder), from the prior's
        means, from the ``"posterior"``, from its means, or averaged over batches.
    ratio, max_proportion
        Which directions count as null; see :meth:`LayerInputs.null_space`.
    projection
        Project Adam's ``"update"``, which cannot leak, or the ``"gradient"``.
    saturation, min_free
        A layer's null space counts as used up when its R is above the first, or
        the part of its directions that are free below the second.
    on_saturation
        ``"warn"``, or start a ``"fresh"`` decoder for the classes to come.

    Examples
    --------
    >>> VAESettings(decoder="frosen")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: decoder is 'frosen'. Did you mean 'frozen'? ...
    """

    prior: str | Prior = "fpi"
    decoder: Update = "null-space"
    classwise: bool = True
    whitened: bool = False
    ridge: float = 0.2
    factors: int = 0
    directions: int = 0
    share: float = 1.0
    dynamic: bool = False
    embedding: int = 0
    hidden: int = 512
    latent: int = 256
    epochs: int = 500
    batch_size: int = 128
    max_steps: int = 500
    learning_rate: float = 1e-3
    later_learning_rate: float = 1e-3
    warm_up: float = 0.3
    likelihood_std: float = 1.0
    relative: bool = True
    noise: float | Literal["match"] = "match"
    inputs: Source = "prior-mean"
    ratio: float = 100.0
    max_proportion: float | None = None
    projection: Projection = "update"
    saturation: float = 0.05
    min_free: float = 0.05
    on_saturation: Literal["warn", "fresh"] = "warn"

    def __post_init__(self) -> None:
        make_prior(self.prior)
        check_choice("decoder", self.decoder, get_args(Update))
        check_choice("inputs", self.inputs, get_args(Source))
        check_choice("projection", self.projection, get_args(Projection))
        check_choice("on_saturation", self.on_saturation, ("warn", "fresh"))
        _ = self.training  # checks its own
        for name in ("classwise", "whitened", "dynamic"):
            check_choice(name, getattr(self, name), (True, False))
        for name, least in (("hidden", 1), ("latent", 1), ("embedding", 0), ("factors", 0)):
            check_number(name, getattr(self, name), least, whole=True)
        check_number("directions", self.directions, 0, whole=True)
        if self.directions and not self.inputs.startswith("prior"):
            raise InputError(
                f"inputs is {self.inputs!r}, which needs an encoder, and with directions="
                f"{self.directions} there is none; use inputs='prior-mean' or 'prior'"
            )
        for name in ("learning_rate", "later_learning_rate"):
            check_number(name, getattr(self, name), 1e-12)
        check_number("ratio", self.ratio, 1)
        check_number("ridge", self.ridge, 1e-6)
        check_number("share", self.share, 0, 1)
        for name in ("saturation", "min_free"):
            check_number(name, getattr(self, name), 0, 1)
        if self.noise != "match":
            check_number("noise", self.noise, 0)
        if self.max_proportion is not None:
            check_number("max_proportion", self.max_proportion, 0, 1)

    @property
    def training(self) -> Training:
        """How to train."""
        return Training(
            self.epochs,
            self.batch_size,
            self.max_steps,
            self.warm_up,
            self.likelihood_std,
            self.relative,
        )

    @property
    def protected_layers(self) -> int:
        """How many of the decoder's three layers are kept in a null space."""
        if self.decoder != "null-space":
            return 0
        return 2 if self.dynamic else 3


@dataclass(frozen=True, kw_only=True)
class FactorSettings(VAESettings):
    """The same with other defaults: whitened, class factors, and a small decoder that is taught.

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
