"""Gates on fairness by hand, and figures of sites that have none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.evaluation.fairness import FairnessGate, SiteFairness, figures
from services.contracts.reading import explain

LOSSES = [1.0, 2.0, 3.0, 4.0, 10.0]


def gate(index: str, **more: Any) -> FairnessGate:
    return FairnessGate.model_validate({"index": index, "at_most": 2.0} | more)


def test_the_worst_site_is_the_largest_of_the_values() -> None:
    assert gate("worst_site").of(LOSSES) == 10.0


def test_the_worst_share_is_measured_by_the_best_share() -> None:
    """Worst 40 % of five are 10 and 4, mean 7; the best 20 % are 1; the other way round it would be 10 / 1.5."""
    assert gate("relative_unfairness", alpha=0.4, beta=0.2).of(LOSSES) == pytest.approx(7.0)
    assert gate("relative_unfairness", alpha=0.2, beta=0.4).of(LOSSES) == pytest.approx(10.0 / 1.5)
    assert gate("relative_unfairness").of(LOSSES) == pytest.approx(10.0)


@pytest.mark.parametrize("index", ["worst_site", "gini"])
def test_shares_belong_to_the_index_that_has_them(index: str) -> None:
    for more in ({"alpha": 0.5}, {"beta": 0.5}):
        with pytest.raises(ValidationError) as refused:
            gate(index, **more)
        assert explain(refused.value) == f"alpha and beta belong to relative_unfairness, the index is {index}"
    assert gate(index, alpha=0.2, beta=0.2) == gate(index), "as a stored gate comes back"


@pytest.mark.parametrize(("more", "said"), [
    ({"index": "equality"}, "there is no fairness index 'equality'; indices are "), ({"alpha": 0.0}, "alpha: "),
    ({"beta": 1.01}, "beta: "), ({"at_most": math.inf}, "at_most: "), ({"at_most": -1e-9}, "at_most: "),
])
def test_a_gate_that_says_nothing_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        FairnessGate.model_validate({"index": "relative_unfairness", "at_most": 1.0} | more)
    assert said in explain(refused.value)


def test_a_gate_is_called_by_index_and_basis() -> None:
    assert gate("gini").name == "gini of loss"
    assert gate("worst_site", basis="worst_case_risk").name == "worst_site of worst case risk"


def test_a_figure_that_is_no_finite_number_is_none_and_each_basis_has_its_own() -> None:
    sites = [
        SiteFairness(site_id=name, weight=0.25, loss=loss, worst_case_risk=risk)
        for name, loss, risk in (("a", 0.1, math.inf), ("b", None, 0.2), ("c", math.nan, -math.inf), ("d", 0.0, 3.0))
    ]
    assert figures(sites, "loss") == {"a": 0.1, "b": None, "c": None, "d": 0.0}
    assert figures(sites, "worst_case_risk") == {"a": None, "b": 0.2, "c": None, "d": 3.0}
