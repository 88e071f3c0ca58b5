"""Random projections that come back from a seed: the same stream for ever, and PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from frugalvae_lab.heads.projection import normal_matrix

#: At least 16 numbers, of which some are no multiple of 16.
SHAPES = [(4, 4), (2, 8), (1, 17), (5, 7), (31, 1), (16, 3), (33, 3), (12, 100), (7, 333), (640, 9)]
SEEDS = [0, 1, 7, 12345, 2**31 - 2, 2**32 - 1]

#: Of two seeds the first 21 numbers, in three rows.
KNOWN = {
    0: [
        [-1.12584, -1.15236, -0.250579, -0.433879, 0.84871, -1.555095, -0.34136],
        [1.853006, 0.468096, -0.157712, 1.44366, 0.266049, 0.166455, 1.586334],
        [0.946298, -0.843677, 0.931827, 1.259009, 2.004981, 0.053737, 0.618057],
    ],
    12345: [
        [-1.479808, 0.487306, -3.012794, 0.443855, 0.359756, -0.542859, 0.430743],
        [-1.92567, -0.214522, -1.261995, -0.128155, -0.373714, 1.068268, -0.93001],
        [0.114245, -0.445028, 0.522418, 0.60577, 0.747196, 0.154222, -0.348696],
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_those_of_pytorch(seed: int, shape: tuple[int, int]) -> None:
    """Files of the first versions hold sums of features that PyTorch projected."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(seed)
    theirs = torch.empty(shape).normal_(generator=generator).numpy()
    ours = normal_matrix(seed, shape)
    assert ours.shape == shape
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-6)


@pytest.mark.parametrize("seed", KNOWN)
def test_numbers_never_change(seed: int) -> None:
    """As PyTorch gave them, for where it is absent; 21 make one block and one that overlaps it."""
    found = normal_matrix(seed, (3, 7))
    np.testing.assert_allclose(found, KNOWN[seed], rtol=0, atol=3e-6)


def test_another_seed_gives_other_numbers() -> None:
    assert np.array_equal(normal_matrix(5, (9, 9)), normal_matrix(5, (9, 9)))
    assert not np.isclose(normal_matrix(5, (9, 9)), normal_matrix(6, (9, 9))).any()


def test_numbers_are_standard_normal() -> None:
    from scipy.stats import kstest

    assert kstest(normal_matrix(3, (400, 250)).ravel(), "norm").pvalue > 0.01
