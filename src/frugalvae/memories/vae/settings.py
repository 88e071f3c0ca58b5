"""Settings of the incremental VAE: every variant and ablation of the paper, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.maths.latent_priors import Prior, make_prior
from frugalvae.maths.training import Schedule, Training
from frugalvae.memories.vae.decoder import Projection, Source, Update
from frugalvae.memories.vae.records import Thresholds


@dataclass(frozen=True, kw_only=True)
class PaperSettings:
    """How the paper's VAE is built, trained and kept from forgetting.

    Parameters
    ----------
    prior
        Where class Gaussians stand: ``"fpi"`` (Eq. 5), ``"normal"``, ``"uniform"``,
        ``"single"`` (all at the origin), or an object of :mod:`frugalvae.maths.latent_priors`.
    decoder
        How later tasks may change shared weights: in the ``"null-space"`` of the inputs of old
        classes, ``"free"``, or not at all (``"frozen"``).
    classwise
        Normalise each class separately; otherwise all classes by the first task's statistics.
    dynamic
        Give each task a last layer and biases of its own.
    embedding
        Length of the class embedding appended to each layer's input; 0 for none.
    hidden, latent
        Width of the hidden layers, and dimension of the latent space.
    epochs, batch_size, max_steps, warm_up, likelihood_std, relative, schedule
        How to train; see :class:`frugalvae.maths.training.Training`.
    learning_rate, later_learning_rate
        Learning rates of Adam: for the encoder and an untrained decoder, and for a decoder
        that has learned a task.
    noise
        Standard deviation of the noise added to decoded samples, on the normalised scale.
        ``"match"`` gives samples the variance of their class.
    inputs
        Which layer inputs the null space protects: those of latents drawn from the ``"prior"``,
        of its means (``"prior-mean"``), of latents drawn from the ``"posterior"``, of its
        means, or averages over batches.
    ratio, max_proportion
        Which directions count as null; see :meth:`LayerInputs.null_space`.
    projection
        Project Adam's ``"update"``, which cannot leak, or the ``"gradient"``.

    Examples
    --------
    >>> PaperSettings(decoder="frosen")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: decoder is 'frosen'. Did you mean 'frozen'? ...
    """

    prior: str | Prior = "fpi"
    decoder: Update = "null-space"
    classwise: bool = True
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
    schedule: Schedule = "one-cycle"
    noise: float | Literal["match"] = "match"
    inputs: Source = "prior-mean"
    ratio: float = 100.0
    max_proportion: float | None = None
    projection: Projection = "update"

    def __post_init__(self) -> None:
        make_prior(self.prior)
        check_choice("decoder", self.decoder, get_args(Update))
        check_choice("inputs", self.inputs, get_args(Source))
        check_choice("projection", self.projection, get_args(Projection))
        _ = self.training  # checks its own
        for name in ("classwise", "dynamic"):
            check_choice(name, getattr(self, name), (True, False))
        for name, least in (("hidden", 1), ("latent", 1), ("embedding", 0)):
            check_number(name, getattr(self, name), least, 8_192, whole=True)
        for name in ("learning_rate", "later_learning_rate"):
            check_number(name, getattr(self, name), 1e-12)
        check_number("ratio", self.ratio, 1)
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
            self.schedule,
        )

    @property
    def protected_layers(self) -> int:
        """How many of the decoder's three layers are kept in their null spaces."""
        if self.decoder != "null-space":
            return 0
        return 2 if self.dynamic else 3


@dataclass(frozen=True, kw_only=True)
class VAESettings(PaperSettings):
    """The paper's settings, and those of our additions, all off by default.

    Parameters
    ----------
    whitened
        Normalise by class means and the shared covariance instead of class-wise deviations;
        see :class:`frugalvae.memories.vae.whitened.WhitenedNormaliser`.
    ridge
        Its ridge.
    factors
        The number of class directions that are added to decoded samples;
        see :func:`frugalvae.memories.vae.residual.class_directions`.
    directions
        Fit the decoder to this many directions per class instead of training it on Eq. 6, in
        ``max_steps`` steps and without an encoder; at most ``latent``. See
        :func:`frugalvae.memories.vae.residual.teach_directions`.
    share
        The share of a class's own variance, decoded or from class directions, that its density
        uses. Few samples overestimate it.
    saturation, min_free
        When a null space counts as saturated; see
        :class:`frugalvae.memories.vae.records.Thresholds`.
    on_saturation
        ``"warn"``, or start a ``"fresh"`` decoder for the next classes.
    """

    whitened: bool = False
    ridge: float = 0.2
    factors: int = 0
    directions: int = 0
    share: float = 1.0
    saturation: float = Thresholds.saturation
    min_free: float = Thresholds.min_free
    on_saturation: Literal["warn", "fresh"] = "warn"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("on_saturation", self.on_saturation, ("warn", "fresh"))
        check_choice("whitened", self.whitened, (True, False))
        for name in ("factors", "directions"):
            check_number(name, getattr(self, name), 0, 8_192, whole=True)
        if self.directions and not self.inputs.startswith("prior"):
            raise InputError(
                f"inputs is {self.inputs!r}, which needs an encoder, and with directions="
                f"{self.directions} there is none; use inputs='prior-mean' or 'prior'"
            )
        check_number("ridge", self.ridge, 1e-6)
        for name in ("share", "saturation", "min_free"):
            check_number(name, getattr(self, name), 0, 1)

    @property
    def thresholds(self) -> Thresholds:
        """When a null space counts as saturated."""
        return Thresholds(self.saturation, self.min_free)


@dataclass(frozen=True, kw_only=True)
class LiteralSettings(VAESettings):
    """Settings with other defaults: every choice as the paper words it.

    Which of its words each one follows is in ``docs/paper.md``.

    >>> LiteralSettings().schedule
    'constant'
    """

    prior: str | Prior = "fpi-literal"
    max_steps: int = 1_000_000  # 500 epochs, however many steps these are
    learning_rate: float = 5e-4
    later_learning_rate: float = 5e-5
    schedule: Schedule = "constant"
    warm_up: float = 0.0
    relative: bool = False
    noise: float | Literal["match"] = 0.0
    inputs: Source = "posterior"
    projection: Projection = "gradient"


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
