"""The clients of Table 1, its settings, its scores by hand and its verdicts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.fairness.indices import gini, relative_unfairness
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from tests.benchmarks.papers.relative_fairness import table1
from tests.benchmarks.papers.relative_fairness.clients import LEAST_ROWS, Clients, digits, dirichlet_clients


def test_every_image_goes_to_one_client_and_a_fifth_is_kept_apart() -> None:
    rows = digits()
    clients = dirichlet_clients(rows, 0)
    sizes = []
    seen = []
    for name, (features, labels) in clients.training.items():
        kept, kept_labels = clients.judging[name]
        sizes.append(len(labels) + len(kept_labels))
        assert len(kept_labels) == max(1, round(0.2 * sizes[-1]))
        seen.append(np.vstack([features, kept]))
    assert len(sizes) == 100 and sum(sizes) == 1797 and min(sizes) >= LEAST_ROWS
    np.testing.assert_array_equal(np.sort(np.vstack(seen).sum(axis=1)), np.sort(rows[0].sum(axis=1)))
    again = dirichlet_clients(rows, 0)
    assert all(np.array_equal(again.training[name][0], clients.training[name][0]) for name in clients.training)
    assert len(dirichlet_clients(rows, 1).training["client-000"][1]) != len(clients.training["client-000"][1])


@pytest.mark.parametrize("rates", ["equal", "paper"])
def test_every_method_takes_its_parameters(rates: str) -> None:
    for method in table1.METHODS.values():
        check_parameters(get_method(method), table1.parameters(method, rates))


def test_equal_rates_go_the_same_way_in_a_round() -> None:
    ways, climbs = [], []
    for method in table1.METHODS.values():
        own = table1.parameters(method, "equal")
        steps = own.get("epochs", own.get("local_steps", 1)) if "global_step" not in own else 1
        ways.append(own.get("global_step", own["step_size"]) * steps)
        if "mixture_step" in own:
            climbs.append(own["mixture_step"] * own.get("local_steps", 1))
        if "dual_step" in own:
            climbs.append(own["dual_step"])
    np.testing.assert_allclose(ways, table1.TRAVEL)
    np.testing.assert_allclose(climbs, table1.CLIMB)


def test_scores_by_hand() -> None:
    objective = NetworkObjective(2, hidden=1, dropout=0.0)
    weights = np.array([1.0, 0.0, 0.0, 2.0, 0.0, 0.0])  # scores (0, 2 relu(x))
    judging = {f"c{g}": (np.array([[float(g)], [1.0]]), np.array([float(g < 3), 1.0])) for g in range(5)}
    found = table1.scores(objective, weights, Clients({}, judging))
    right = [0.5, 1.0, 1.0, 0.5, 0.5]  # client 0 ties, and the first class wins; clients 3 and 4 have one wrong label
    losses = [float(np.mean([np.log1p(np.exp(2 * g if g >= 3 else -2 * g)), np.log1p(np.exp(-2.0))])) for g in range(5)]
    assert found[:3] == (pytest.approx(np.mean(right)), 0.5, 1.0)
    assert found[3:] == (pytest.approx(relative_unfairness(losses, 0.2, 0.2)), pytest.approx(gini(losses)))


def test_the_curves_of_figure_4_are_means_over_the_seeds() -> None:
    rows = [{"method": "DRFA", "losses": json.dumps(losses)} for losses in ([3.0, 1.0], [1.0, 1.0])]
    ((x, curve),) = table1.lorenz_curves(rows).values()
    assert x == [0.0, 0.5, 1.0]
    assert curve == pytest.approx([0.0, (0.25 + 0.5) / 2 - 0.25, 0.5])


def test_verdicts_follow_the_numbers() -> None:
    def rows(ours: tuple[float, float, float]) -> list[dict[str, object]]:
        found = [
            {"method": name, "relative_unfairness": 5.0, "gini": 0.4, "all": 0.9}
            for name in table1.METHODS
            if name != table1.OURS
        ]
        return [*found, {"method": table1.OURS, **dict(zip(("relative_unfairness", "gini", "all"), ours, strict=True))}]

    assert list(table1.verdicts(rows((4.0, 0.3, 0.9))).values()) == [True, True, True]
    assert list(table1.verdicts(rows((5.0, 0.5, 0.8))).values()) == [False, False, False]
