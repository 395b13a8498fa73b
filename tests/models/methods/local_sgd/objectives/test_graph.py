"""Graph networks: gradients by finite differences, what must not matter to a graph, mixtures of embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.mixup import MixupObjective
from models.methods.local_sgd.objectives.graphs.objective import GraphObjective
from models.methods.local_sgd.objectives.graphs.packing import pack_graph
from models.simulation.local_training import train_local

NETWORK = GraphObjective(n_features=3, most_nodes=5, hidden=4)
NETWORKS = [NETWORK, replace(NETWORK, kind="gat", hidden=8), replace(NETWORK, kind="mpnn", edge_kinds=2)]
WIDTH = 5 * (3 + 5)
every_network = pytest.mark.parametrize("network", NETWORKS, ids=[each.kind for each in NETWORKS])


def path(count: int) -> list[tuple[int, int]]:
    return [(node, node + 1) for node in range(count - 1)]


def drawn(sizes: tuple[int, ...] = (1, 3, 5, 4), seed: int = 0) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    kinds = [1 + node % 2 for node in range(4)]
    graphs = [pack_graph(random.normal(size=(size, 3)), path(size), 5, kinds[: size - 1]) for size in sizes]
    return np.array(graphs), random.normal(size=len(sizes))


def parameters(network: GraphObjective = NETWORK, width: int = WIDTH) -> FloatArray:
    random = np.random.default_rng(1)
    return network.start(width, 0) + 0.1 * random.normal(size=network.size(width))


def held_to_differences(
    found: FloatArray, loss: Callable[[FloatArray], float], network: GraphObjective = NETWORK
) -> None:
    weights = parameters(network)
    for place in range(weights.shape[0]):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        assert found[place] == pytest.approx((loss(weights + step) - loss(weights - step)) / 2e-6, abs=1e-6)


@every_network
def test_gradient_is_that_of_the_loss(network: GraphObjective) -> None:
    (rows, targets), weights = drawn(), parameters(network)
    value, gradient = network.loss_and_gradient(weights, rows, targets)
    assert value == pytest.approx(float(np.mean((network.predictions(weights, rows) - targets) ** 2)) / 2)
    assert (np.abs(gradient) > 0).mean() > 0.5
    held_to_differences(gradient, lambda weights: network.loss(weights, rows, targets), network)


@every_network
def test_gradient_of_a_mixture_is_that_of_its_loss(network: GraphObjective) -> None:
    rows, others = drawn(), drawn((2, 5, 4, 1), seed=3)
    found = network.mixed_loss_and_gradient(parameters(network), rows, others, 0.3)[1]
    held_to_differences(found, lambda at: network.mixed_loss_and_gradient(at, rows, others, 0.3)[0], network)


def test_a_mixture_is_one_of_embeddings_and_targets() -> None:
    rows, others, weights = drawn(), drawn((2, 5, 4, 1), seed=3), parameters()
    mixed = 0.3 * NETWORK.embeddings(weights, rows[0]) + 0.7 * NETWORK.embeddings(weights, others[0])
    *_, inner, bias, outer, last = NETWORK._split(weights)
    predicted = (np.maximum(mixed @ inner + bias, 0.0) @ outer)[:, 0] + last[0]
    expected = float(np.mean((predicted - 0.3 * rows[1] - 0.7 * others[1]) ** 2)) / 2
    assert NETWORK.mixed_loss_and_gradient(weights, rows, others, 0.3)[0] == pytest.approx(expected)
    assert NETWORK.loss(weights, 0.3 * rows[0] + 0.7 * others[0], 0.3 * rows[1] + 0.7 * others[1]) != pytest.approx(
        expected, rel=1e-3
    )


def test_mixup_draws_such_mixtures() -> None:
    rows, partner, weights = drawn(), drawn((2,), seed=3), parameters()
    objective = MixupObjective(NETWORK, partner, 1.0, 1.0, ratio=0.25)
    others = (np.repeat(partner[0], 4, axis=0), np.repeat(partner[1], 4))
    expected = NETWORK.mixed_loss_and_gradient(weights, rows, others, 0.25)
    found = objective.loss_and_gradient(weights, *rows, np.random.default_rng(0))
    assert found[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(found[1], expected[1])


@every_network
def test_neither_the_order_of_nodes_nor_the_room_beside_them_matters(network: GraphObjective) -> None:
    random, order = np.random.default_rng(2), np.array([2, 0, 3, 1])
    nodes, edges, weights = random.normal(size=(4, 3)), [(0, 1), (1, 2), (1, 3)], parameters(network)
    place = {int(old): new for new, old in enumerate(order)}
    renamed = pack_graph(nodes[order], [(place[b], place[a]) for a, b in edges], 5)
    expected = network.embeddings(weights, pack_graph(nodes, edges, 5)[None])
    np.testing.assert_allclose(network.embeddings(weights, renamed[None]), expected, atol=1e-12)
    wide = replace(network, most_nodes=9)
    np.testing.assert_allclose(wide.embeddings(weights, pack_graph(nodes, edges, 9)[None]) * 9, expected * 5)
    other = network.embeddings(weights, pack_graph(nodes, path(4), 5)[None])
    assert np.abs(other - expected).max() > 1e-3


@every_network
def test_kinds_of_edges_tell_messages_apart_and_nothing_else(network: GraphObjective) -> None:
    nodes, weights = np.random.default_rng(2).normal(size=(4, 3)), parameters(network)
    plain, kinds = (pack_graph(nodes, path(4), 5, each)[None] for each in ([1, 1, 1], [1, 2, 1]))
    same = np.allclose(network.embeddings(weights, plain), network.embeddings(weights, kinds), atol=1e-12)
    assert same is (network.kind != "mpnn")


def test_a_layer_is_that_of_kipf_and_welling() -> None:
    """A chain of two nodes by hand: both have degree two with their own loop, so S is 1/2 everywhere."""
    network = GraphObjective(1, 2, hidden=1, layers=1)
    weights = np.array([2.0, 0.5, 1.0, 0.0, 1.0, 0.0])
    row = pack_graph(np.array([[1.0], [4.0]]), [(0, 1)], 2)
    assert network.embeddings(weights, row[None])[0, 0] == pytest.approx(2.0 * 2.5 + 0.5)


def test_attention_is_that_of_velickovic() -> None:
    """Two nodes by hand, one head: scores 2 u + 2 v of a node with itself, 2 u + 8 v and 8 u + 2 v across."""
    network = GraphObjective(1, 2, hidden=4, layers=1, kind="gat")
    u, v = -0.5, 0.3
    weights = np.zeros(network.size(6))
    weights[0], weights[4], weights[8], weights[12] = 2.0, u, v, -7.0  # the first head's, and its bias
    row = pack_graph(np.array([[1.0], [4.0]]), [(0, 1)], 2)
    leaky = {(a, b): max(e, 0.2 * e) for a in (2, 8) for b in (2, 8) for e in (a * u + b * v,)}
    after = []
    for a in (2, 8):
        own, other = np.exp(leaky[a, 2]), np.exp(leaky[a, 8])
        summed = (2 * own + 8 * other) / (own + other) - 7.0
        after.append(summed if summed > 0 else np.expm1(summed))
    assert min(after) < 0 < max(after) + 7
    assert network.embeddings(weights, row[None])[0].tolist() == pytest.approx([sum(after) / 2, 0, 0, 0])


def test_message_passing_is_that_of_gilmer() -> None:
    """Two nodes by hand, one unit, one step: an edge of the second kind, which has a matrix of its own."""
    network = GraphObjective(1, 2, hidden=1, layers=1, kind="mpnn", edge_kinds=2)
    first, bias, one, two = 0.5, 0.1, 3.0, -1.5
    into, along, gates = np.array([0.2, -0.4, 0.6]), np.array([0.3, 0.7, -0.5]), np.array([0.05, -0.1, 0.15])
    weights = np.concatenate([[first, bias, one, two], into, along, gates, [1.0, 0.0, 1.0, 0.0]])
    row = pack_graph(np.array([[1.0], [4.0]]), [(0, 1)], 2, [2])
    states, after = [0.6, 2.1], []
    for own, other in (states, states[::-1]):
        message = two * other
        z, r = (1 / (1 + np.exp(-(message * into[k] + own * along[k] + gates[k]))) for k in range(2))
        candidate = np.tanh(message * into[2] + r * own * along[2] + gates[2])
        after.append((1 - z) * own + z * candidate)
    assert network.embeddings(weights, row[None])[0, 0] == pytest.approx(sum(after) / 2)


def test_attention_to_a_far_neighbour_leaves_no_hole() -> None:
    """Where a node's share in itself is 0 in floating point, values and slopes are still numbers."""
    network = GraphObjective(1, 2, hidden=4, layers=1, kind="gat")
    weights = parameters(network, 6)
    weights[8:12] = 1e4
    rows = pack_graph(np.array([[1.0], [-4.0]]), [(0, 1)], 2)[None]
    assert np.isfinite(network.loss_and_gradient(weights, rows, np.ones(1))[1]).all()
    assert np.isfinite(network.predictions(weights, rows)).all()


@every_network
def test_the_methods_of_local_steps_train_it(network: GraphObjective) -> None:
    """How many nodes a graph has, learnt by two sites."""
    random = np.random.default_rng(5)

    def site() -> tuple[FloatArray, FloatArray]:
        sizes = random.integers(1, 6, 40)
        graphs = [pack_graph(np.ones((size, 3)), path(int(size)), 5) for size in sizes]
        return np.array(graphs), sizes / 5.0

    sites = {"a": site(), "b": site()}
    numbers = {"step_size": 0.1, "batch": 0.25, "local_steps": 5.0}
    for method, more in (("fedavg", {}), ("drfa", {"mixture_step": 0.01}), ("drflm", {"mixture_step": 0.01})):
        given = numbers | more if method != "fedavg" else {"step_size": 0.1, "batch": 0.25, "epochs": 1.0}
        found = train_local(network, sites, method=method, parameters=given, rounds=30)
        assert found.site_losses[-1].max() < 0.1 * found.site_losses[0].max()


def test_weights_of_another_network_are_refused() -> None:
    """As of one with fewer units, or in a column, whose gradient would be no column."""
    size, graphs = NETWORK.size(WIDTH), drawn()[0]
    for weights in (np.zeros(size - 1), np.zeros(size + 1), np.zeros((size, 1))):
        with pytest.raises(ProblemError, match=f"the network has {size} parameters, got shape"):
            NETWORK.predictions(weights, graphs)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(ProblemError, match="1 to 5 nodes, got 6"):
        pack_graph(np.ones((6, 3)), [], 5)
    for one, other in ((0, 2), (2, 0), (-1, 0), (0, -1)):
        with pytest.raises(ProblemError, match=f"joins nodes {one} and {other}, but the graph has 2"):
            pack_graph(np.ones((2, 3)), [(one, other)], 5)
    with pytest.raises(ProblemError, match="1 to 5 nodes, got 0"):
        pack_graph(np.ones((0, 3)), [], 5)
    with pytest.raises(ProblemError, match=r"each of the 2 edges needs a kind of 1 or more, got \[1\]"):
        pack_graph(np.ones((3, 3)), path(3), 5, [1])
    with pytest.raises(ProblemError, match="joins node 1 to itself"):
        pack_graph(np.ones((2, 3)), [(1, 1)], 5)
    with pytest.raises(ProblemError, match=r"each of the 1 edges needs a kind of 1 or more, got \[0\]"):
        pack_graph(np.ones((2, 3)), [(0, 1)], 5, [0])
    with pytest.raises(ProblemError, match="6 hidden units cannot be dealt to 4 heads"):
        GraphObjective(3, 5, hidden=6, kind="gat")
    with pytest.raises(ProblemError, match="a packed graph has 40 numbers, got 39"):
        NETWORK.size(39)
    with pytest.raises(ProblemError, match="graph network needs"):
        GraphObjective(3, 5, hidden=0)
