"""Gaussian densities of many classes at many rows, for memories that classify by them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from frugalvae.errors import check_number
from frugalvae.symmetric import add_ridge

LEAST_RIDGE, PLAIN_RIDGE = 0.03, 0.1


@dataclass(frozen=True)
class Shrinkage:
    """How much of a class's own covariance counts beside what all classes share.

    Attributes
    ----------
    own
        The share of the class's own covariance, from 0 to 1.
    ridge
        What is added to each variance, as a part of the mean variance. By default a covariance
        gets as much as it has coordinates for each sample that it was found in, and variances
        alone get a tenth.
    """

    own: float = 0.1
    ridge: float | None = None

    def __post_init__(self) -> None:
        check_number("own", self.own, 0, 1)
        if self.ridge is not None:
            check_number("ridge", self.ridge, 1e-6)

    def ridge_for(self, width: int, samples: int) -> float:
        """For a covariance of so many coordinates, found in so many samples.

        Where samples are few, most of its small variances are too small, and what is divided by
        them too large.

        >>> Shrinkage().ridge_for(512, 2048), Shrinkage(ridge=0.1).ridge_for(512, 2048)
        (0.25, 0.1)
        """
        return max(LEAST_RIDGE, width / max(1, samples)) if self.ridge is None else self.ridge

    @property
    def plain_ridge(self) -> float:
        """For variances alone."""
        return PLAIN_RIDGE if self.ridge is None else self.ridge

    def variances(self, own: Tensor) -> Tensor:
        """Variances of classes (k, d), drawn towards their mean."""
        shared = own.mean(dim=0)
        level = shared.mean()
        level = torch.where(level > 0, level, torch.ones_like(level))
        return self.own * own + (1 - self.own) * shared + self.plain_ridge * level


SHRINKAGE = Shrinkage()


@dataclass(frozen=True)
class Whitener:
    """A linear map after which a covariance is the identity.

    Attributes
    ----------
    matrix, back
        (d, d): rows of features are multiplied by it from the right; and its inverse.
    log_det
        Logarithm of the covariance's determinant.
    """

    matrix: Tensor
    back: Tensor
    log_det: float

    @classmethod
    def of(cls, covariance: Tensor, ridge: float) -> Whitener:
        """Of a covariance (d, d), with ``ridge`` times its mean variance on the diagonal.

        >>> whitener = Whitener.of(torch.tensor([[6.0, 0.0], [0.0, 2.0]]), ridge=0.5)
        >>> torch.tensor([[2.0, 4.0]]) @ whitener.matrix
        tensor([[0.7071, 2.0000]])
        """
        root = torch.linalg.cholesky(add_ridge(covariance, ridge))
        identity = torch.eye(len(root)).to(root)
        inverse = torch.linalg.solve_triangular(root, identity, upper=False).T
        return cls(inverse, root.T, 2 * float(root.diagonal().log().sum()))


@dataclass(frozen=True)
class Gaussians:
    """One covariance for all classes, and directions in which each has more of its own.

    Attributes
    ----------
    whiten
        (d, d): turns the shared covariance into the identity.
    means
        In those coordinates, (k, d).
    directions
        (k, m, d), orthogonal within a class; each as long as the root of what it takes off
        the squared distance of a point at distance one along it.
    constants
        What is subtracted from minus half the squared distance, (k,).
    """

    whiten: Tensor
    means: Tensor
    directions: Tensor
    constants: Tensor

    @classmethod
    def of(cls, whitener: Whitener, means: Tensor, factors: Tensor, own: float = 1.0) -> Gaussians:
        """Of covariances W + ``own`` F F^T, by Woodbury's identity: no d x d matrix a class.

        Parameters
        ----------
        whitener
            Of W.
        means
            (k, d).
        factors
            F^T of each class, (k, m, d); rows may be zero.
        """
        means = means.double() @ whitener.matrix
        white = factors.double() @ whitener.matrix
        values, vectors = torch.linalg.eigh(white @ white.mT)  # m x m a class
        values = own * values.clamp(min=0)  # variances that the class adds
        lengths = (own / (1 + values)).sqrt()
        log_det = whitener.log_det + (1 + values).log().sum(dim=1)
        constants = (log_det + means.shape[1] * math.log(2 * math.pi)) / 2
        directions = lengths[..., None] * (vectors.mT @ white)
        return cls(whitener.matrix, means, directions, constants)

    def log_density(self, rows: Tensor) -> Tensor:
        """Of each class at each row (n, d): (n, k)."""
        white = rows @ self.whiten.to(rows)
        means, directions = self.means.to(rows), self.directions.to(rows)
        distances = torch.cdist(white, means).square()
        classes, most, dim = directions.shape
        along = white @ directions.reshape(classes * most, dim).T
        along = along.view(len(rows), classes, most) - (directions @ means[..., None])[..., 0]
        return (along.square().sum(dim=2) - distances) / 2 - self.constants.to(rows)


def diagonal_log_density(rows: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """Of Gaussians with variances (k, d) at each row (n, d): (n, k).

    >>> zeros, ones = torch.zeros(1, 2), torch.ones(1, 2)
    >>> diagonal_log_density(zeros, zeros, ones).exp() * torch.pi
    tensor([[0.5000]])
    """
    means, precisions = means.to(rows), 1 / variances.to(rows)
    centre = means.mean(dim=0)  # smaller numbers lose fewer digits
    rows, means = rows - centre, means - centre
    distances = rows.square() @ precisions.T - 2 * rows @ (means * precisions).T
    distances = distances + (means.square() * precisions).sum(dim=1)
    log_det = -precisions.log().sum(dim=1)
    return -(distances + log_det + rows.shape[1] * math.log(2 * math.pi)) / 2
