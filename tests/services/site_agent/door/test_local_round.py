"""The one door: what it answers, signed and in the ledger, and what a survey says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk
from services.contracts.keys.signing import verify
from services.contracts.machines.asset_type import AssetType, Feature
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.wire.codec import decode, digest, encode, unpack
from services.contracts.wire.messages import SiteRefusal, SiteUpdate
from services.site_agent.logs import PRIVATE
from services.site_agent.own_use.own_screen import data_summary
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault
from tests.ledgers import verified

Make = Callable[..., Any]


def dataset_of(site: Any) -> Dataset:
    return Vault(site.source, site.asset_type).current()


def test_join_says_the_number_of_training_rows_and_the_radius(make_site: Make) -> None:
    answer = make_site().ask("join", spec=TrainingSpec(radius=RadiusRule(rule="samples", value=10.0)))
    assert all(array.shape == () for array in answer.arrays.values())
    assert {name: float(array) for name, array in answer.arrays.items()} == {
        "n_samples": 76.0, "radius": pytest.approx(1 / 760), "radius_is_estimate": 0.0, "confidence": 0.0,
        "lift_check": 0.0,
    }


def test_a_fixed_radius_is_taken_as_it_is(make_site: Make) -> None:
    spec = TrainingSpec(radius=RadiusRule(rule="fixed", value=0.02))
    assert make_site().ask("join", spec=spec).arrays["radius"] == 0.02


def test_every_answer_is_signed_refers_to_its_task_and_stands_in_the_ledger(make_site: Make) -> None:
    site = make_site()
    frame = encode(site.task("join", round=4))
    answers = [site.door.answer(frame), site.door.answer(b"junk")]
    entries = verified(site.folder / "ledger.jsonl")
    assert [entry["sha256"] for entry in entries] == [digest(answer) for answer in answers]
    assert [entry["bytes"] for entry in entries] == [len(answer) for answer in answers]
    for answer, task in zip(answers, (frame, b"junk"), strict=True):
        said = unpack(answer)
        assert said.signature is not None and verify(site.public_key, said.signed, said.signature)
        message = decode(answer, 1 << 20)
        assert isinstance(message, SiteUpdate | SiteRefusal)
        assert (message.task_sha256, message.site_id) == (digest(task), "plant-1")


def test_a_repeated_task_gets_the_same_bytes_and_a_line_in_the_ledger_each_time(make_site: Make) -> None:
    site = make_site()
    frame = encode(site.task("evaluate", arrays={"weights": np.ones((1, 4))}))
    assert site.door.answer(frame) == site.door.answer(frame)
    assert len(verified(site.folder / "ledger.jsonl")) == 2


def test_evaluate_counts_the_held_out_part_and_measures_risk_on_the_training_part(make_site: Make) -> None:
    site = make_site(test_fraction=0.4)
    weights = np.array([[8.0, 3.0, 0.1, -6.2]])
    answer = site.ask("evaluate", arrays={"weights": weights})
    data = dataset_of(site)
    diagnosed = data.test.features @ weights[0, :3] + weights[0, 3] > 0
    expected = [[np.sum((data.test.classes == true) & (diagnosed == said)) for said in (0, 1)] for true in (0, 1)]
    np.testing.assert_array_equal(answer.arrays["confusion"], expected)
    assert answer.arrays["confusion"].sum() == 40
    spec = RobustSpec(radius=1 / 600, label_flip_cost=1.0)
    labels = np.where(data.train.classes == 1, 1.0, -1.0)
    risk = site_risk(weights[0], SiteProblem(data.train.features, labels, spec)).value
    np.testing.assert_allclose(answer.arrays["risk"], [risk], rtol=1e-12)


def test_evaluate_with_three_classes_takes_the_highest_score(
    make_site: Make, make_table: Make, three_classes: AssetType
) -> None:
    rows = make_table(120, classes=("healthy", "leak", "worn"))
    site = make_site(rows, asset_type=three_classes)
    weights = np.zeros((3, 4))
    weights[2, 3] = 1.0
    answer = site.ask("evaluate", arrays={"weights": weights})
    np.testing.assert_array_equal(answer.arrays["confusion"], [[0, 0, 10]] * 3)
    assert answer.arrays["risk"].shape == (3,)


def test_without_an_intercept_the_last_weight_is_not_used_for_the_risk(make_site: Make) -> None:
    site = make_site()
    spec = TrainingSpec(fit_intercept=False, support="sensor_ranges", radius=RadiusRule(rule="fixed", value=0.05))
    weights = np.array([[3.0, 2.0, -0.5, 7.0]])
    answer = site.ask("evaluate", arrays={"weights": weights}, spec=spec)
    train = dataset_of(site).train
    ball = RobustSpec(0.05, 1.0, support=BoxSupport(np.zeros(3), np.ones(3)), fit_intercept=False)
    problem = SiteProblem(train.features, np.where(train.classes == 1, 1.0, -1.0), ball)
    assert answer.arrays["risk"] == pytest.approx([site_risk(weights[0, :3], problem).value], rel=1e-12)


def test_survey_says_what_fits(make_site: Make, make_table: Make, policy: SitePolicy) -> None:
    rows = make_table(80)
    rows[1][0] = 5000
    for row in rows:
        del row[2]
    site = make_site(rows)
    text = "\n".join(data_summary(site.source, site.asset_type, policy))
    assert "training: 60 rows (healthy 30, leak 30)" in text
    assert "held out: 20 rows (healthy 10, leak 10)" in text
    assert "flow: 1 values outside the sensor range were clipped" in text
    assert "not measured: oil" in text


def test_a_sensor_in_another_unit_is_told_to_the_plant_alone(
    make_site: Make, make_table: Make, policy: SitePolicy, caplog: pytest.LogCaptureFixture
) -> None:
    """All its readings stand at one end of the range then: what is trained knows nothing of it, and nothing fails."""
    rows = make_table(80)
    for row in rows[1:]:
        row[0] = round(1000.0 * row[0], 3)
    site = make_site(rows)
    said = "flow: every value is outside the sensor range (0 to 100 L/min) and was clipped to an end of it"
    lines = data_summary(site.source, site.asset_type, policy)
    assert [line.startswith(said) for line in lines if line.startswith("flow: ")] == [True]
    assert "another unit?" in "\n".join(lines)
    site.door.warm_up()
    told = {record.name for record in caplog.records if record.getMessage().startswith("flow: ")}
    assert told == {PRIVATE.name}, "in the plant's own log, and on no console"


def test_survey_says_whose_range_is_much_too_wide(make_site: Make, make_table: Make, policy: SitePolicy) -> None:
    """One mistyped reading that made it into the contract's range leaves the others a corner of it."""
    site = make_site(make_table(80))
    before = "\n".join(data_summary(site.source, site.asset_type, policy))
    assert "of the sensor range (" not in before
    first = site.asset_type.features[0]
    wide = Feature.model_validate(first.model_dump() | {"high": first.low + 20 * first.width})
    asset_type = site.asset_type.model_copy(update={"features": (wide, *site.asset_type.features[1:])})
    lines = [line for line in data_summary(site.source, asset_type, policy) if "of the sensor range (" in line]
    assert len(lines) == 1 and lines[0].startswith(f"{first.name}: 98 of 100 rows read ")
    bounds = {"low": 1e-9, "high": first.high}
    by_log = Feature.model_validate(first.model_dump() | bounds | {"scale": "log"})
    asset_type = site.asset_type.model_copy(update={"features": (by_log, *site.asset_type.features[1:])})
    (line,) = (line for line in data_summary(site.source, asset_type, policy) if "of the sensor range (" in line)
    readings = np.sort([float(row[0]) for row in make_table(80)[1:]])
    low = float(line.split(" rows read ")[1].split(" ")[0])
    assert readings[0] <= low <= readings[5], "in the sensor's unit"
    assert f"{first.low:g} to {wide.high:g}" in lines[0]


def test_a_class_with_few_held_out_rows_is_not_counted(
    make_site: Make, make_table: Make, three_classes: AssetType, policy: SitePolicy
) -> None:
    """4 held-out rows of the third class: how they were diagnosed would tell what they are."""
    rows = make_table(101, classes=("healthy", "leak"))
    rows += [[*row[:3], "worn"] for row in make_table(17)[1:]]
    weights = np.vstack([np.zeros((2, 4)), [0.0, 0.0, 0.0, 1.0]])
    for least, few in ((5, 0.0), (4, 4.0)):
        wanted = policy.model_copy(update={"min_class_samples": least})
        site = make_site(rows, asset_type=three_classes, policy=wanted, folder=f"site-{least}")
        counts = site.ask("evaluate", arrays={"weights": weights}).arrays["confusion"]
        assert counts[2].tolist() == [0.0, 0.0, few] and (counts[:2].sum(axis=1) >= 5).all()


def test_the_policys_least_rows_hold_for_every_step_of_local_training(
    make_site: Make, policy: SitePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that asks for tiny batches gets none under the policy's ``min_samples``."""
    sizes: list[int] = []
    whole = LinearObjective.loss_and_gradient

    def seen(self: Any, point: Any, features: Any, *rest: Any) -> Any:
        sizes.append(len(features))
        return whole(self, point, features, *rest)

    monkeypatch.setattr(LinearObjective, "loss_and_gradient", seen)
    wanted = policy.model_copy(update={"methods": ("fedavg",), "min_samples": 23})
    site = make_site(policy=wanted)
    point, scalar = np.zeros((1, 4)), np.ones(1)
    message = {"point": point, "correction": point, "step_size": scalar, "draw": scalar, "snapshot_step": scalar}
    answer = site.ask("round", method="fedavg", arrays=message, parameters={"batch": 0.01})
    assert isinstance(answer, SiteUpdate)
    assert len(sizes) > 2 and min(sizes) == 23
