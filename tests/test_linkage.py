"""Average linkage, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

from frugalvae.care.suggestions import average_linkage


@pytest.mark.parametrize(("count", "most"), [(1, 1.0), (2, 9.0), (40, 2.5), (200, 4.0)])
def test_groups_are_those_of_scipy(count: int, most: float) -> None:
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, 8)) + 3 * rng.normal(size=(6, 8))[rng.integers(6, size=count)]
    distances = np.linalg.norm(x[:, None] - x, axis=2)
    found = average_linkage(distances, most)
    if count == 1:
        assert found.tolist() == [0]
        return
    tree = hierarchy.linkage(distances[np.triu_indices(count, 1)], "average")
    twin = hierarchy.fcluster(tree, most, "distance")
    np.testing.assert_array_equal(found[:, None] == found[None, :], twin[:, None] == twin[None, :])
