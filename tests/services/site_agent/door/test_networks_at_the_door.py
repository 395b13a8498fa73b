"""A network's rounds at a plant's door: what the policy asks of rows, what the record counts, which shapes fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.cohorts.fixed_point import from_words, word_count
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from services.contracts.problems.network import NetworkSpec
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.answers.held_out import network_on_sums
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.party import Party

Make = Callable[..., Any]
SPEC = TrainingSpec.model_validate({
    "loss": "cross_entropy", "network": {"hidden": 4}, "radius": {"rule": "fixed", "value": 0.0},
})
OBJECTIVE = NetworkObjective(2, 4, 0.0)
METHOD = "fedavg"


def message(point: np.ndarray) -> dict[str, np.ndarray]:
    one = {"step_size": 0.1, "draw": 7.0, "snapshot_step": 0.0}
    return {
        "point": point[None], "correction": np.zeros((1, point.size)),
        **{name: np.array([value]) for name, value in one.items()},
    }


def ask(site: Any, point: np.ndarray, spec: TrainingSpec = SPEC) -> Any:
    parameters = check_parameters(get_method(METHOD), {})
    return site.ask("round", spec=spec, method=METHOD, arrays=message(point), parameters=parameters)


@pytest.fixture
def rules(policy: SitePolicy) -> SitePolicy:
    return policy.model_copy(update={"methods": (METHOD,), "exposure_limit": 0.0})


def test_a_round_has_the_size_of_the_network_and_its_exact_loss(make_site: Make, rules: SitePolicy) -> None:
    site, point = make_site(policy=rules), OBJECTIVE.start(3, 1)
    train = Vault(site.source, site.asset_type).current().train
    answer = ask(site, point)
    assert isinstance(answer, SiteUpdate), answer
    assert answer.arrays["slope"].shape == answer.arrays["local_point"].shape == (1, point.size)
    loss, _ = OBJECTIVE.loss_and_gradient(point, train.features, train.classes.astype(float))
    assert answer.arrays["risk"] == pytest.approx([loss])


def test_a_unit_that_fewer_rows_light_than_the_policy_asks_for_tells_nothing(
    make_site: Make, rules: SitePolicy
) -> None:
    site, point = make_site(policy=rules), OBJECTIVE.start(3, 1)
    train = Vault(site.source, site.asset_type).current().train
    inner, bias, _, _ = OBJECTIVE.layers(point, 3)  # views
    edge = np.sort(train.features[:, 0])
    inner[:2] = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    bias[0] = -edge[-rules.min_samples // 2]
    bias[1] = edge[2 * rules.min_samples]
    lit = (train.features @ inner.T + bias > 0).sum(axis=0)
    assert lit[0] < rules.min_samples <= lit[1]
    answer = ask(site, point)
    assert isinstance(answer, SiteUpdate), answer
    first, biases, second, _ = OBJECTIVE.layers(answer.arrays["slope"][0], 3)
    assert not first[0].any() and not biases[0] and not second[:, 0].any()
    assert first[1].any() and biases[1]
    ended = OBJECTIVE.layers(answer.arrays["local_point"][0], 3)
    np.testing.assert_array_equal(ended[0][0], inner[0])


def test_every_row_counts_of_an_answer_about_a_network(make_site: Make, rules: SitePolicy) -> None:
    strict = make_site(policy=rules.model_copy(update={"allow_unaccounted": False}))
    parameters = check_parameters(get_method(METHOD), {})
    asked = {"spec": SPEC, "method": METHOD, "arrays": message(OBJECTIVE.start(3, 1)), "parameters": parameters}
    assert strict.refusal_code("round", **asked) == "exposure_limit"


def test_parameters_of_another_size_are_refused(make_site: Make, rules: SitePolicy) -> None:
    site, parameters = make_site(policy=rules), check_parameters(get_method(METHOD), {})
    for wrong in (np.zeros(4), np.zeros(OBJECTIVE.size(3) + 1)):
        asked = {"spec": SPEC, "method": METHOD, "arrays": message(wrong), "parameters": parameters}
        assert site.refusal_code("round", **asked) == "bad_task"
    asked = {"spec": SPEC, "method": METHOD, "arrays": {"weights": np.ones((1, 4))}}
    assert site.refusal_code("evaluate", run_id="b" * 32, **asked) == "bad_task"


def test_one_question_about_thresholds_beside_one_another_gives_no_row(make_site: Make, rules: SitePolicy) -> None:
    """Neighbouring units were one row apart, so their slopes differed by that row: 84 of 150 rows by one question."""
    site, hidden = make_site(policy=rules), 200
    train = Vault(site.source, site.asset_type).current().train
    network = NetworkObjective(2, hidden, 0.0)
    point = np.zeros(network.size(3))
    inner, bias, outer, _ = network.layers(point, 3)  # views
    places = np.linspace(0.0, 1.0, hidden // 2)
    inner[: hidden // 2, 0], inner[hidden // 2 :, 0] = 1.0, -1.0
    bias[: hidden // 2], bias[hidden // 2 :] = -places, places
    outer[0], outer[1] = 1e-3, -1e-3
    spec = SPEC.model_copy(update={"network": NetworkSpec(hidden=hidden)})
    answer = ask(site, point, spec)
    assert isinstance(answer, SiteUpdate), answer
    away = []
    for vector in (answer.arrays["slope"][0], point - answer.arrays["local_point"][0]):
        slopes, biases, _, _ = network.layers(vector, 3)
        sums = np.column_stack([slopes, biases])
        steps = (sums[:, None] - sums)[np.triu_indices(hidden, 1)]
        steps = steps[np.abs(steps[:, 3]) > 1e-9 * np.abs(sums[:, 3]).max()]
        assert len(steps), "units do differ"
        rows = steps[:, :3] / steps[:, 3:]
        away.append(np.abs(train.features[:, None] - rows[None]).max(axis=2).min())
    assert min(away) > 1e-6


def test_on_sums_the_risk_of_a_networks_round_is_told_as_an_evaluations_is(make_site: Make, rules: SitePolicy) -> None:
    """No guard stands over it: at points made for one row it was that row's loss, to all digits."""
    site, point = make_site(policy=rules), OBJECTIVE.start(3, 1)[None]
    task = site.task("round", spec=SPEC, method=METHOD, arrays=message(point[0]))
    reach = row_reach(point, SPEC, site.asset_type, OBJECTIVE)
    exact = {"risk": np.array([0.7]), "cut_height": np.array([0.7]), "slope": point}
    told = network_on_sums(task, exact, reach, 50, lambda _: np.array([0.5, 0.0]))
    assert 0.5 * reach.loss / (500 * 50) < told["risk"][0] - 0.7 < 2 * reach.loss / (500 * 50) + 1e-3
    assert told["cut_height"] == 0.0 and told["slope"] is point


def test_a_cohort_is_told_no_exact_loss_of_a_network(new_party: Callable[..., Party]) -> None:
    party = new_party(methods=(METHOD, "cohort-bundle"))
    party.agree()
    train = party.site.door._vault.current().train
    point = OBJECTIVE.start(3, 1)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("risk", "cut_height", "norm_weight"), (1,))
    shapes |= dict.fromkeys(("slope", "local_point", "snapshot"), (1, point.size))
    words = party.sum("round", 1, message(point), word_count(shapes), spec=SPEC, method=METHOD)
    risk = 4 * float(from_words(words, shapes)["risk"][0])
    loss = OBJECTIVE.loss(point, train.features, train.classes.astype(float))
    assert 1e-6 < risk - loss < 5e-3
