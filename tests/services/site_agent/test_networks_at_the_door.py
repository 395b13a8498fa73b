"""A network's rounds at a plant's door: what the policy asks of rows, what the record counts, which shapes fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from services.contracts.messages import SiteUpdate
from services.contracts.training_spec import TrainingSpec
from services.site_agent.policy import SitePolicy
from services.site_agent.vault.reader import Vault

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
    inner[:2] = [1.0, 0.0, 0.0]
    bias[0] = -(edge[-rules.min_samples + 1] - 1e-9)  # one row short
    bias[1] = -(edge[-rules.min_samples] - 1e-9)
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
