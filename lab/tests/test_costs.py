"""What rivals cost before they are trained, as tables of the paper count it."""

from __future__ import annotations

import pytest
from tests.test_accounting import DIM, cost, millions, named

from frugalvae.errors import InputError
from frugalvae.parts.protocols import MemoryReport, component


def test_mixture_of_five_costs_what_table_3_says() -> None:
    assert millions(cost("mixture", DIM, 200)) == "1.54"


def test_mixture_stores_its_weights_although_the_paper_counts_none() -> None:
    report = MemoryReport("mixture", 2, 1, cost("mixture", 3, 1))
    assert (report.paper, report.stored) == (5 * 2 * 3, 5 * (2 * 3 + 1))


def test_settings_count() -> None:
    assert cost("mixture", DIM, 200, parts=1)[0] == component("means", 200 * DIM)
    rank = {
        name: named(cost("factors", 1280, 100, **settings))
        for name, settings in (("usual", {}), ("small", {"budget": 300_000}))
    }
    assert sum(part.stored for part in rank["small"].values()) <= 300_000
    assert sum(part.stored for part in rank["usual"].values()) <= 1_000_000


def test_a_new_class_of_a_mixture_costs_what_the_text_says() -> None:
    more, fewer = (sum(part.paper for part in cost("mixture", DIM, n)) for n in (201, 200))
    assert more - fewer == 7680


@pytest.mark.parametrize("name", ["factors", "mixture", "fetril"])
def test_every_memory_says_what_it_will_cost(name: str) -> None:
    few, more = (
        sum(part.stored for part in cost(name, 16, n, tasks=2, samples=10 * n)) for n in (2, 4)
    )
    assert few < more


def test_fetril_asks_for_the_number_of_samples() -> None:
    with pytest.raises(InputError, match="depends on the data; give --samples N"):
        cost("fetril", DIM, 200)
