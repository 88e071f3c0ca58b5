from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from frugalvae.paper.networks import MLP
from frugalvae.parts.tensors import linear

SIZES = [4, 6, 5, 3]
CLASSES, EMBEDDING = 3, 2


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed))


@pytest.fixture
def plain() -> MLP:
    return MLP(SIZES, rng=seeded())


@pytest.fixture
def conditioned() -> MLP:
    mlp = MLP(SIZES, EMBEDDING, rng=seeded())
    mlp.add_classes(CLASSES, seeded(1))
    return mlp


ROWS = torch.tensor([2, 0, 1, 2, 0])
X = normal(len(ROWS), SIZES[0], seed=5)


# --------------------------------------------------------------------------- what is computed


def test_layers_are_affine_with_relu_between_them_only(plain: MLP) -> None:
    first, second, last = plain.layers
    hidden = (X @ first.weight.T + first.bias).clamp(min=0)
    hidden = (hidden @ second.weight.T + second.bias).clamp(min=0)
    torch.testing.assert_close(plain(X), hidden @ last.weight.T + last.bias)
    assert (plain(X) < 0).any()


def test_embedding_of_the_sample_class_follows_the_input_of_every_layer(conditioned: MLP) -> None:
    for i, row in enumerate(ROWS.tolist()):
        out = X[i]
        for depth, layer in enumerate(conditioned.layers):
            out = layer.weight @ torch.cat([out, conditioned.tables[depth][row]]) + layer.bias
            out = out.clamp(min=0) if depth < 2 else out
        torch.testing.assert_close(conditioned(X, ROWS)[i], out)


@pytest.mark.parametrize("embedding", [0, EMBEDDING])
def test_layer_inputs_are_what_the_layers_are_fed(embedding: int) -> None:
    mlp = MLP(SIZES, embedding, rng=seeded())
    mlp.add_classes(CLASSES, seeded(1))
    fed: list[Tensor] = []
    for layer in mlp.layers:
        layer.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[0]))
    mlp(X, ROWS)
    really_fed = fed.copy()
    told = mlp.layer_inputs(X, ROWS)
    assert [inputs.shape[1] for inputs in told] == [size + embedding for size in SIZES[:-1]]
    for one, other in zip(told, really_fed, strict=True):
        assert torch.equal(one, other)


def test_linears_are_the_layers_themselves(plain: MLP) -> None:
    assert all(one is other for one, other in zip(plain.linears, plain.layers, strict=True))


def test_network_without_embeddings_has_no_tables_and_ignores_rows(plain: MLP) -> None:
    plain.add_classes(CLASSES, seeded(1))
    assert len(plain.tables) == 0
    assert torch.equal(plain(X, ROWS), plain(X))


# --------------------------------------------------------------------------- randomness


def test_same_seed_gives_the_same_network_and_another_seed_another() -> None:
    first, again, other = (MLP(SIZES, rng=seeded(seed)) for seed in (0, 0, 1))
    assert torch.equal(first(X), again(X))
    for one, another in zip(first.parameters(), other.parameters(), strict=True):
        assert not torch.equal(one, another)


def test_layers_of_one_network_differ() -> None:
    first, second = MLP([4, 4, 4], rng=seeded()).layers
    assert not torch.equal(first.weight, second.weight)


def test_making_a_network_leaves_the_global_random_state() -> None:
    before = torch.get_rng_state()
    MLP(SIZES, EMBEDDING, rng=seeded()).add_classes(CLASSES, seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_initial_values_fill_the_range_that_pytorch_uses() -> None:
    ours, theirs = linear(16, 2000, seeded()), torch.nn.Linear(16, 2000)
    for name in ("weight", "bias"):
        values, reference = getattr(ours, name).detach(), getattr(theirs, name).detach()
        assert float(values.abs().max()) == pytest.approx(0.25, rel=0.01)
        assert float(values.std()) == pytest.approx(float(reference.std()), rel=0.05)
        assert getattr(ours, name).requires_grad


# --------------------------------------------------------------------------- new classes


def test_new_classes_leave_old_rows_and_outputs(conditioned: MLP) -> None:
    old_rows = [table.detach().clone() for table in conditioned.tables]
    old_output = conditioned(X, ROWS)
    conditioned.add_classes(4, seeded(2))
    for table, old in zip(conditioned.tables, old_rows, strict=True):
        assert table.shape == (CLASSES + 4, EMBEDDING)
        assert torch.equal(table[:CLASSES], old)
    assert torch.equal(conditioned(X, ROWS), old_output)


def test_new_rows_are_normal_and_different_in_every_table() -> None:
    mlp = MLP(SIZES, EMBEDDING, rng=seeded())
    mlp.add_classes(4000, seeded(1))
    first, second, last = mlp.tables
    for table in (first, second, last):
        assert abs(table.mean().item()) < 0.05
        assert table.std().item() == pytest.approx(1, rel=0.05)
    assert not torch.equal(first, second)
    assert not torch.equal(second, last)


def test_new_rows_depend_on_the_generator_alone() -> None:
    tables = []
    for seed in (1, 1, 2):
        mlp = MLP(SIZES, EMBEDDING, rng=seeded())
        mlp.add_classes(CLASSES, seeded(seed))
        tables.append(mlp.tables[0].detach())
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_tables_that_grew_after_training_can_be_trained_again(conditioned: MLP) -> None:
    conditioned(X, ROWS).sum().backward()
    conditioned.add_classes(1, seeded(2))
    conditioned.zero_grad()
    conditioned(X, torch.full_like(ROWS, CLASSES)).square().sum().backward()
    for table in conditioned.tables:
        assert table.grad is not None
        assert table.grad.shape == table.shape
        assert table.grad[CLASSES].abs().sum() > 0
        assert table.grad[:CLASSES].abs().sum() == 0


# --------------------------------------------------------------------------- forks


def test_fork_begins_as_the_same_function(conditioned: MLP) -> None:
    assert torch.equal(conditioned.fork()(X, ROWS), conditioned(X, ROWS))


def test_fork_shares_weights_of_the_trunk_and_tables_and_nothing_else(conditioned: MLP) -> None:
    ours, theirs = (dict(mlp.named_parameters()) for mlp in (conditioned, conditioned.fork()))
    assert ours.keys() == theirs.keys()
    shared = {name for name in ours if ours[name] is theirs[name]}
    assert shared == {
        "layers.0.weight",
        "layers.1.weight",
        "tables.0",
        "tables.1",
        "tables.2",
    }
    storages = {p.data_ptr() for p in ours.values()}
    assert not any(theirs[name].data_ptr() in storages for name in theirs.keys() - shared)


def test_training_a_fork_reaches_the_original_through_the_trunk_only(plain: MLP) -> None:
    before = copy.deepcopy(plain)
    fork = plain.fork()
    with torch.no_grad():
        for parameter in fork.parameters():
            parameter.add_(1.0)
    for depth, (layer, old) in enumerate(zip(plain.layers, before.layers, strict=True)):
        moved = 1.0 if depth < 2 else 0.0
        torch.testing.assert_close(layer.weight, old.weight + moved)
        torch.testing.assert_close(layer.bias, old.bias)


def test_forks_of_forks_share_the_same_trunk(plain: MLP) -> None:
    fork = plain.fork()
    grandchild = fork.fork()
    assert grandchild.layers[0].weight is plain.layers[0].weight
    assert grandchild.layers[-1].weight is not fork.layers[-1].weight
    assert grandchild.layers[0].bias is not fork.layers[0].bias


def test_classes_added_through_a_fork_are_known_to_the_original(conditioned: MLP) -> None:
    conditioned.fork().add_classes(1, seeded(2))
    assert [len(table) for table in conditioned.tables] == [CLASSES + 1] * 3


def test_fork_does_not_change_the_original(conditioned: MLP) -> None:
    before = [(name, id(parameter)) for name, parameter in conditioned.named_parameters()]
    fork = conditioned.fork()
    fork.layers = torch.nn.ModuleList()
    assert [(name, id(p)) for name, p in conditioned.named_parameters()] == before
