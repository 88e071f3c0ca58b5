from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from frugalvae.errors import InputError
from frugalvae.parts import MEMORIES, make_memory
from frugalvae.parts.protocols import Component, MemoryReport, component

DIM, TASKS = 768, 10


def cost(
    name: str, dim: int, classes: int, tasks: int = TASKS, *, samples: int = 0, **settings: Any
) -> list[Component]:
    """What a memory will cost."""
    return make_memory(name, **settings).cost(dim, classes, tasks, samples or None)


def millions(parts: list[Component]) -> str:
    """As the paper prints it."""
    return f"{sum(part.paper for part in parts) / 1e6:.2f}"


def named(parts: list[Component]) -> dict[str, Component]:
    return {part.name: part for part in parts}


# --------------------------------------------------------------------------- the paper's numbers


@pytest.mark.parametrize(
    ("name", "with_200_classes", "with_100_classes"),
    [
        ("vae-fo", "2.96", "2.63"),
        ("vae-fod", "6.26", "5.92"),
        ("vae-fodce", "6.39", "6.05"),
        ("vae-cgil", "158.26", "79.13"),
    ],
)
def test_vae_costs_what_table_2_says(
    name: str, with_200_classes: str, with_100_classes: str
) -> None:
    assert millions(cost(name, DIM, 200)) == with_200_classes
    assert millions(cost(name, DIM, 100)) == with_100_classes


@pytest.mark.parametrize(
    ("samples", "printed"),
    [
        pytest.param(5994, "4.60", id="CUB-200"),
        pytest.param(8144, "6.25", id="Cars-196"),
        pytest.param(24000, "18.43", id="ImageNet-R"),
        pytest.param(50000, "38.40", id="CIFAR-100"),
    ],
)
def test_storing_everything_costs_what_table_2_says(samples: int, printed: str) -> None:
    assert millions(cost("store-all", DIM, 200, samples=samples)) == printed


def test_ablation_without_normalisation_follows_from_the_layers() -> None:
    """The caption prints 2.38 and 2.40, which no reading of the layers gives."""
    fo = cost("vae-fo", DIM, 200, classwise=False)
    ceo = cost("vae-ceo", DIM, 200, classwise=False)
    assert (millions(fo), millions(ceo)) == ("2.35", "2.37")


def test_new_class_costs_what_the_text_says() -> None:
    """3.3k for VAE-FO, 238 times less than a VAE of its own."""

    def growth(name: str) -> int:
        more, fewer = cost(name, DIM, 201), cost(name, DIM, 200)
        return sum(part.paper for part in more) - sum(part.paper for part in fewer)

    assert growth("vae-fo") == 3328
    assert round(growth("vae-cgil") / growth("vae-fo")) == 238


# --------------------------------------------------------------------------- variants


def test_static_vae_keeps_a_covariance_for_every_layer_and_no_task_layers() -> None:
    parts = named(cost("vae-fo", 9, 5, 3, hidden=6, latent=4))
    assert parts["covariances"].paper == 4**2 + 6**2 + 6**2
    assert parts["covariances"].stored == 10 + 21 + 21
    assert "task layers" not in parts
    assert "class embeddings" not in parts


@pytest.mark.parametrize(
    ("settings", "missing"),
    [({"decoder": "free"}, "covariances"), ({"prior": "single"}, "latent means")],
)
def test_what_is_switched_off_costs_nothing(settings: dict[str, Any], missing: str) -> None:
    whole = named(cost("vae-fo", 9, 5, 3))
    without = named(cost("vae-fo", 9, 5, 3, **settings))
    assert whole.keys() - without.keys() == {missing}
    assert all(without[name] == whole[name] for name in without)


def test_one_map_for_all_classes_stores_two_vectors_that_the_paper_does_not_count() -> None:
    for parts in (
        cost("vae-fo", 9, 5, 3, classwise=False),
        cost("vae-cgil", 9, 5, classwise=False),
    ):
        assert named(parts)["normalisation"] == component("normalisation", 0, 2 * 9)


def test_sample_noise_is_one_parameter_per_class_that_the_paper_does_not_count() -> None:
    for parts in (cost("vae-fo", 9, 5, 3), cost("vae-cgil", 9, 5)):
        assert named(parts)["sample noise"] == component("sample noise", 0, 5)


def test_fresh_decoder_brings_covariances_and_replaces_a_task_layer() -> None:
    memory = make_memory("vae-fod")
    one, two = (named(memory.cost(9, 5, 4, decoders=decoders)) for decoders in (1, 2))
    for name in ("decoder", "covariances"):
        assert two[name].paper == 2 * one[name].paper
        assert two[name].stored == 2 * one[name].stored
    assert 3 * two["task layers"].paper == 2 * one["task layers"].paper
    assert two["encoder"] == one["encoder"]


def test_dynamic_vae_of_one_task_has_no_task_layers() -> None:
    assert "task layers" not in named(cost("vae-fod", 9, 5, tasks=1))


def test_stored_numbers_leave_out_what_the_paper_counts_twice() -> None:
    parts = named(cost("vae-fo", DIM, 200))
    assert parts["normalisation"].paper == 2 * parts["normalisation"].stored == 200 * 4 * DIM
    assert parts["encoder"].paper == parts["encoder"].stored
    per_class = named(cost("vae-cgil", DIM, 200))
    assert per_class["normalisation"] == parts["normalisation"]


@pytest.mark.parametrize(
    ("covariance", "paper", "stored", "size"),
    [
        ("diagonal", 5 * (3 + 3), 5 * (3 + 3), 4 * 30),
        ("shared", 5 * 3 + 9, 5 * 3 + 6 + 1, 4 * 15 + 8 * 7),
        ("full", 5 * (3 + 9), 5 * (3 + 6), 4 * 45),
    ],
)
def test_gaussian_costs(covariance: str, paper: int, stored: int, size: int) -> None:
    report = MemoryReport("gaussian", 5, 1, cost(f"gaussian-{covariance}", 3, 5))
    assert (report.paper, report.stored, report.bytes) == (paper, stored, size)


# --------------------------------------------------------------------------- before training


def test_every_memory_of_ours_says_what_it_will_cost() -> None:
    for name in MEMORIES:
        costs = [
            sum(part.stored for part in cost(name, 16, classes, tasks=2, samples=10 * classes))
            for classes in (2, 4)
        ]
        assert costs[0] < costs[1] or name == "none", name


def test_nothing_is_kept_by_no_memory() -> None:
    assert cost("none", DIM, 200) == []


def test_ceo_has_embeddings_and_no_latent_means() -> None:
    parts = named(cost("vae-ceo", DIM, 200))
    assert parts["class embeddings"].paper == 6 * 10 * 200
    assert "latent means" not in parts
    assert "task layers" not in parts


def test_what_depends_on_the_data_asks_for_the_number_of_samples() -> None:
    with pytest.raises(InputError, match="depends on the data; give --samples N"):
        cost("store-all", DIM, 200)


def test_an_unknown_memory_is_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'vae-fo'"):
        cost("vae-f0", DIM, 200)


# --------------------------------------------------------------------------- report


def test_bytes_are_four_a_number_and_eight_for_covariances() -> None:
    parts = named(cost("vae-fo", 9, 5, 3))
    assert parts["covariances"].bytes == 8 * parts["covariances"].stored
    others = [part for name, part in parts.items() if name != "covariances"]
    assert all(part.bytes == 4 * part.stored for part in others)


def test_component_counts_what_is_stored_in_bytes() -> None:
    assert component("a", 10) == Component("a", 10, 10, 40)
    assert component("a", 10, 0) == Component("a", 10, 0, 0)
    assert component("a", 10, 6, width=8) == Component("a", 10, 6, 48)


def test_report_adds_up_and_prints_a_table() -> None:
    parts = [component("means", 2000), component("covariances", 30_000, 15_000, width=8)]
    report = MemoryReport("vae-fo", classes=20, tasks=2, components=parts)
    assert (report.paper, report.stored, report.bytes) == (32_000, 17_000, 128_000)
    heading, columns, *rows = str(report).splitlines()
    assert heading == "vae-fo: 20 classes in 2 tasks"
    assert columns.split() == ["as", "the", "paper", "counts", "really", "stored", "bytes"]
    assert [row.split() for row in rows] == [
        ["means", "2,000", "2,000", "8,000"],
        ["covariances", "30,000", "15,000", "120,000"],
        ["total", "32,000", "17,000", "128,000"],
    ]
    assert len({len(row) for row in (columns, *rows)}) == 1  # columns line up


def test_accounting_needs_no_pytorch() -> None:
    program = "import sys, frugalvae.parts.protocols; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
