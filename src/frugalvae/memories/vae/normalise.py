"""Class-wise normalisation: every class is brought to zero mean and unit variance.

The paper normalises by min-max and then by z-score. A z-score undoes whatever
affine map came before it, so the z-score alone gives the same numbers from half
the statistics.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from frugalvae.maths.arrays import Array
from frugalvae.maths.equations import spectrum
from frugalvae.maths.symmetric import pack
from frugalvae.tensors import TensorTask, to_array


class Move(NamedTuple):
    """How normalised coordinates changed: new = old @ there, old = new @ back."""

    there: Tensor
    back: Tensor


class Normaliser(Protocol):
    """Maps features of a class to a common scale and back."""

    def learn(self, task: TensorTask) -> Move | None:
        """Take the statistics of new classes. How known classes' coordinates moved, if they did."""
        ...

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """To the common scale."""
        ...

    def prepare(self, features: Tensor) -> Tensor:
        """The part of normalising that is the same for all classes."""
        ...

    def place(self, label: int, prepared: Tensor) -> Tensor:
        """The rest of it."""
        ...

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Back to the scale of the class."""
        ...

    def spread(self) -> Tensor:
        """Standard deviation within classes of each normalised coordinate, or of all alike."""
        ...

    def log_volume(self, label: int, features: Tensor) -> Tensor:
        """Logarithm of how much normalising stretches the space around each sample, (n,)."""
        ...

    def forget(self, label: int) -> list[str]:
        """Drop the statistics of a class. A sentence for each trace of it that remains."""
        ...

    def arrays(self) -> dict[str, Array]:
        """What is stored."""
        ...


class GlobalNormaliser:
    """Zero mean and unit variance over the first task, the same map for every class.

    What "no class-wise normalisation" means here: features of any scale must
    still be brought to the unit variance that the likelihood assumes. The first
    task decides the map for good, since old data is gone when new classes arrive.

    >>> normaliser = GlobalNormaliser()
    >>> normaliser.learn(TensorTask(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1])))
    >>> normaliser.learn(TensorTask(torch.tensor([[9.0]]), torch.tensor([2])))
    >>> normaliser.normalise(2, torch.tensor([[9.0]]))
    tensor([[7.]])
    """

    holds_tensors = True

    def __init__(self) -> None:
        self.mean_ = torch.empty(0)
        self.std_ = torch.empty(0)

    def learn(self, task: TensorTask) -> None:
        """Take mean and standard deviation of the first task."""
        if not len(self.mean_):
            self.mean_, std = moments(task.features)
            self.std_ = torch.where(std > 0, std, 1.0)

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        return (features - self.mean_) / self.std_

    def prepare(self, features: Tensor) -> Tensor:
        """All of it."""
        return self.normalise(0, features)

    def place(self, label: int, prepared: Tensor) -> Tensor:
        """Nothing is left to do."""
        return prepared

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return features * self.std_ + self.mean_

    def spread(self) -> Tensor:
        """One: that is what it normalises to."""
        return torch.ones(())

    def log_volume(self, label: int, features: Tensor) -> Tensor:
        """Minus the logarithms of the deviations."""
        return -self.std_.log().sum().expand(len(features))

    def forget(self, label: int) -> list[str]:
        """The first task decides for good, whether the class was in it or not."""
        return ["all classes are normalised by the first task's samples, which may include its own"]

    def arrays(self) -> dict[str, Array]:
        """Two vectors."""
        return {"normaliser.mean": to_array(self.mean_), "normaliser.std": to_array(self.std_)}


class ClasswiseNormaliser:
    """Zero mean and unit variance for every class by itself.

    A dimension that is constant in a class (every dimension is, in a class of
    one sample) becomes zero and is restored to exactly that constant.

    >>> normaliser = ClasswiseNormaliser()
    >>> x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    >>> normaliser.learn(TensorTask(x, torch.tensor([7, 7])))
    >>> normaliser.normalise(7, x)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    >>> normaliser.restore(7, torch.zeros(1, 2))
    tensor([[2., 5.]])
    """

    holds_tensors = True

    def __init__(self) -> None:
        self.mean_: dict[int, Tensor] = {}
        self.std_: dict[int, Tensor] = {}

    def learn(self, task: TensorTask) -> None:
        """Take mean and standard deviation of each class."""
        for label in task.classes:
            self.mean_[label], self.std_[label] = moments(task.of(label))

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, divide by the standard deviation."""
        std = self.std_[label]
        return torch.where(std > 0, (features - self.mean_[label]) / std, 0.0)

    def prepare(self, features: Tensor) -> Tensor:
        """Nothing: every class has its own."""
        return features

    def place(self, label: int, prepared: Tensor) -> Tensor:
        """All of it."""
        return self.normalise(label, prepared)

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Multiply by the standard deviation, add the mean."""
        return features * self.std_[label] + self.mean_[label]

    def spread(self) -> Tensor:
        """One: that is what it normalises to."""
        return torch.ones(())

    def log_volume(self, label: int, features: Tensor) -> Tensor:
        """Minus the logarithms of the deviations; a constant dimension is left out."""
        std = self.std_[label]
        return -std[std > 0].log().sum().expand(len(features))

    def forget(self, label: int) -> list[str]:
        """Nothing remains."""
        del self.mean_[label], self.std_[label]
        return []

    def arrays(self) -> dict[str, Array]:
        """Two vectors a class."""
        return {
            "normaliser.mean": to_array(stack(self.mean_)),
            "normaliser.std": to_array(stack(self.std_)),
        }


def signed_root(features: Tensor) -> Tensor:
    """The square root of each feature, with its sign.

    >>> signed_root(torch.tensor([4.0, -9.0]))
    tensor([ 2., -3.])
    """
    return features.sign() * features.abs().sqrt()


class Frame(NamedTuple):
    """Coordinates in which a ridged covariance is the identity.

    Attributes
    ----------
    there, back
        Matrices that rows of features, and rows of coordinates, are multiplied by.
    spread
        Standard deviation of each coordinate without the ridge: below 1, and small where
        the ridge is most of the variance.
    log_volume
        Logarithm of the determinant of ``there``.
    """

    there: Tensor
    back: Tensor
    spread: Tensor
    log_volume: Tensor


def whitening(covariance: Tensor, ridge: float) -> Frame:
    """The frame of a covariance with ``ridge`` times its mean diagonal entry added.

    >>> frame = whitening(torch.tensor([[6.0, 0.0], [0.0, 2.0]]), 0.5)
    >>> frame.there.abs().sum(dim=1) ** -2  # variances, ridged
    tensor([8.0000, 4.0000], dtype=torch.float64)
    >>> frame.spread.square()
    tensor([0.5000, 0.7500])
    """
    variances, directions = spectrum(covariance)
    level = variances.mean()
    scales = (variances + torch.where(level > 0, ridge * level, 1.0)).sqrt()
    return Frame(
        directions / scales,
        (directions * scales).T,
        (variances.sqrt() / scales).float(),
        -scales.log().sum(),
    )


class WhitenedNormaliser:
    """Zero mean for every class, and unit covariance within classes, over all of them.

    The covariance is that of all samples around their class means. Its sums are kept, so it
    is exact whatever the tasks were; normalised coordinates follow it, and :meth:`learn`
    says how. Features without negative values are replaced by their square roots first:
    they are skewed, and roots are less so.

    Parameters
    ----------
    ridge
        How much of the mean variance is added to every direction's before dividing by it.
        Directions with less than that have little spread afterwards, and samples are too
        few to tell how little.

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

    holds_tensors = True

    def __init__(self, ridge: float = 0.2) -> None:
        self.ridge = ridge
        self.root_ = False
        self.mean_: dict[int, Tensor] = {}
        self.pooled_: Tensor | None = None  # sum of outer products around class means
        self.count_: Tensor | None = None  # of samples in it
        self._frame: Frame | None = None  # derived; never stored

    @property
    def frame(self) -> Frame:
        """Of the covariance as it is now."""
        if self._frame is None:
            assert self.pooled_ is not None
            assert self.count_ is not None
            self._frame = whitening(self.pooled_ / self.count_, self.ridge)
        return self._frame

    def learn(self, task: TensorTask) -> Move | None:
        """Take the mean of each class, and add to the covariance that all share."""
        before = None if self.pooled_ is None else self.frame
        if before is None:
            self.root_ = bool((task.features >= 0).all())
        for label in task.classes:
            x = self._rooted(task.of(label)).double()
            self.mean_[label] = x.mean(dim=0).float()
            self._add(x - x.mean(dim=0))
        self._frame = None
        if before is None:
            return None
        move = before.back @ self.frame.there, self.frame.back @ before.there
        return Move(*(matrix.float() for matrix in move))

    def _add(self, centred: Tensor) -> None:
        scatter = centred.T @ centred
        scatter = (scatter + scatter.T) / 2
        count = scatter.new_tensor([len(centred)])
        self.pooled_ = scatter if self.pooled_ is None else self.pooled_ + scatter
        self.count_ = count if self.count_ is None else self.count_ + count

    def _rooted(self, features: Tensor) -> Tensor:
        return signed_root(features) if self.root_ else features

    def normalise(self, label: int, features: Tensor) -> Tensor:
        """Subtract the mean, and turn and divide so that the shared covariance is one."""
        return (self._rooted(features) - self.mean_[label]) @ self.frame.there.float()

    def prepare(self, features: Tensor) -> Tensor:
        """Turn and divide."""
        return self._rooted(features) @ self.frame.there.float()

    def place(self, label: int, prepared: Tensor) -> Tensor:
        """Subtract the mean, turned and divided."""
        return prepared - self.mean_[label] @ self.frame.there.float()

    def restore(self, label: int, features: Tensor) -> Tensor:
        """Multiply and turn back, add the mean."""
        x = features @ self.frame.back.float() + self.mean_[label]
        return x.sign() * x.square() if self.root_ else x

    def spread(self) -> Tensor:
        """What the ridge leaves of one, for each coordinate."""
        return self.frame.spread

    def log_volume(self, label: int, features: Tensor) -> Tensor:
        """The same for all classes; a root's is taken not too close to zero."""
        volume = self.frame.log_volume.to(features).expand(len(features))
        if self.root_:
            volume = volume - (2 * features.abs().clamp(min=1e-8).sqrt()).log().sum(dim=1)
        return volume

    def forget(self, label: int) -> list[str]:
        """Drop the mean."""
        del self.mean_[label]
        return ["the covariance that all classes share still contains its samples' scatter"]

    def arrays(self) -> dict[str, Array]:
        """A vector a class, and a triangle."""
        kept = {"normaliser.mean": to_array(stack(self.mean_))}
        if self.pooled_ is None or self.count_ is None:
            return kept
        pooled, count = pack(to_array(self.pooled_)), to_array(self.count_)
        return kept | {"normaliser.pooled": pooled, "normaliser.count": count}


def make_normaliser(classwise: bool, *, whitened: bool = False, ridge: float = 0.2) -> Normaliser:
    """The normaliser of the settings."""
    if whitened:
        return WhitenedNormaliser(ridge)
    return ClasswiseNormaliser() if classwise else GlobalNormaliser()


def moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, exact where a column is constant."""
    std = features.std(dim=0, correction=0)
    varies = std > 1e-6 * features.abs().amax(dim=0)  # less is only rounding
    mean = torch.where(varies, features.mean(dim=0), features[0])
    return mean, torch.where(varies, std, 0.0)


def stack(rows: dict[int, Tensor]) -> Tensor:
    """The values of a per-class dictionary as one tensor."""
    return torch.stack(list(rows.values())) if rows else torch.empty(0)
