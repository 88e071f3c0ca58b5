"""Whitened coordinates: an alternative to class-wise normalisation that is not in the paper."""

from __future__ import annotations

import torch
from torch import Tensor

from frugalvae.maths.arrays import Array
from frugalvae.maths.networks import MLP
from frugalvae.maths.running_sums import RunningSums
from frugalvae.maths.symmetric import pack
from frugalvae.maths.whitening import PrincipalWhitener
from frugalvae.memories.vae.decoder import Decoder
from frugalvae.memories.vae.normalise import CoordinateChange, Normaliser
from frugalvae.tensors import TensorTask, stack, to_array


class WhitenedNormaliser(Normaliser):
    """Zero mean per class, and the shared covariance as the identity.

    The shared covariance is that of all samples around their class means. Its sums are kept,
    so it is exact however classes are divided into tasks. Normalised coordinates change with
    it, and :meth:`learn` returns how. Features without negative values are replaced by their
    square roots first, which are less skewed.

    Coordinates are principal axes with the signs that LAPACK gives them. They are derived again
    from the sums when a file is loaded, so another LAPACK may turn some of them around.

    Parameters
    ----------
    ridge
        What is added to the variance of each direction, as a share of the mean variance. Few
        samples do not tell how small the smallest variances are.

    Examples
    --------
    >>> normaliser = WhitenedNormaliser(ridge=0.0)
    >>> x = torch.tensor([[1.0, -5.0], [3.0, -5.0], [1.0, -7.0], [3.0, -7.0]])
    >>> normaliser.learn(TensorTask(x, torch.tensor([7, 7, 7, 7])))
    >>> normaliser.normalise(7, x).square()
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.],
            [1., 1.]])
    >>> normaliser.restore(7, torch.zeros(1, 2))
    tensor([[ 2., -6.]])
    """

    def __init__(self, ridge: float = 0.2) -> None:
        self.ridge = ridge
        self.root_ = False  # whether features are replaced by their square roots
        self.mean_: dict[int, Tensor] = {}
        self.pooled_: Tensor | None = None  # scatter of samples around their class means, (d, d)
        self.count_: Tensor | None = None  # the number of samples in it, (1,)
        self._whitener: PrincipalWhitener | None = None  # derived; never stored

    @property
    def whitener(self) -> PrincipalWhitener:
        """The whitener of the current shared covariance."""
        if self._whitener is None:
            assert self.pooled_ is not None
            assert self.count_ is not None
            self._whitener = PrincipalWhitener.of(self.pooled_ / self.count_, self.ridge)
        return self._whitener

    def learn(self, task: TensorTask) -> CoordinateChange | None:
        """Take the mean of each class, and add its samples to the shared covariance."""
        before = None if self.pooled_ is None else self.whitener
        if before is None:
            self.root_ = bool((task.features >= 0).all())
        for label in task.classes:
            x = self._rooted(task.of(label)).double()
            sums = RunningSums.of(to_array(x))
            self.mean_[label] = torch.from_numpy(sums.mean).to(x).float()
            self._add(torch.from_numpy(sums.scatter).to(x), x.new_tensor([sums.count]))
        self._whitener = None
        if before is None:
            return None
        after = self.whitener
        changes = before.inverse @ after.matrix, after.inverse @ before.matrix
        return CoordinateChange(*(matrix.float() for matrix in changes))

    def _add(self, scatter: Tensor, count: Tensor) -> None:
        self.pooled_ = scatter if self.pooled_ is None else self.pooled_ + scatter
        self.count_ = count if self.count_ is None else self.count_ + count

    def _rooted(self, features: Tensor) -> Tensor:
        return features.sign() * features.abs().sqrt() if self.root_ else features

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, and whiten."""
        return self.whitener.whiten(self._rooted(features) - self.mean_[label])

    def prepare(self, features: Tensor) -> Tensor:
        """Whiten."""
        return self.whitener.whiten(self._rooted(features))

    def finish(self, label: int, prepared: Tensor) -> Tensor:
        """Subtract the whitened mean."""
        return prepared - self.whitener.whiten(self.mean_[label])

    def restore(self, label: int, normalised: Tensor) -> Tensor:
        """Undo the whitening, add the mean, and square if roots were taken."""
        x = self.whitener.unwhiten(normalised) + self.mean_[label]
        return x.sign() * x.square() if self.root_ else x

    def spread(self) -> Tensor:
        """The standard deviation that the ridge leaves to each coordinate, (d,)."""
        return self.whitener.spread

    def log_volume(self, label: int, features: Tensor) -> Tensor:
        """The same for all classes. Roots of features near zero are bounded away from it."""
        volume = -(self.whitener.log_det / 2).to(features).expand(len(features))
        if self.root_:
            volume = volume - (2 * features.abs().clamp(min=1e-8).sqrt()).log().sum(dim=1)
        return volume

    def forget(self, label: int) -> list[str]:
        """Drop the class's mean."""
        del self.mean_[label]
        return ["the covariance that all classes share still contains its samples' scatter"]

    def arrays(self) -> dict[str, Array]:
        """A vector per class, and half of the symmetric scatter."""
        kept = {"normaliser.mean": to_array(stack(self.mean_))}
        if self.pooled_ is None or self.count_ is None:
            return kept
        pooled, count = pack(to_array(self.pooled_)), to_array(self.count_)
        return kept | {"normaliser.pooled": pooled, "normaliser.count": count}


@torch.no_grad()
def change_coordinates(
    change: CoordinateChange,
    decoders: list[Decoder],
    directions: dict[int, Tensor],
    encoder: MLP | None,
) -> None:
    """Express networks and class directions in changed coordinates.

    Decoded samples of old classes stay where they were among features. The last layer is
    multiplied on its output side, and null spaces are on its input side, so they stay too.
    """
    for decoder in {id(d.network.linears[-1].weight): d for d in decoders}.values():
        decoder.transform_output(change.forward)
    for label, old in directions.items():
        directions[label] = change.forward.T @ old
    if encoder is not None:
        first, dim = encoder.linears[0].weight, len(change.forward)
        first[:, :dim] = first[:, :dim] @ change.backward.T
