"""The one door: what it answers, what it refuses, and that refusals and sizes say nothing of the rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk
from services.contracts.asset_type import AssetType, Feature
from services.contracts.codec import decode, digest, encode, pack_arrays, unpack
from services.contracts.messages import Hello, RadiusRule, SiteRefusal, SiteUpdate, TrainingSpec
from services.contracts.signing import verify
from services.site_agent import ledger_check
from services.site_agent.logs import PRIVATE
from services.site_agent.own_screen import data_summary
from services.site_agent.policy import REASONS, SitePolicy
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault

Make = Callable[..., Any]
CANARY = "739158264013"


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
    entries = ledger_check.verify(site.folder / "ledger.jsonl")
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
    assert len(ledger_check.verify(site.folder / "ledger.jsonl")) == 2


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


NO_BETA = TrainingSpec().model_copy(update={"radius": RadiusRule().model_copy(update={"value": 0.0})})
"""A problem that no plan states."""


@pytest.mark.parametrize(
    ("kind", "changes", "code"),
    [
        ("join", {"site_id": "plant-2"}, "wrong_site"),
        ("join", {"method": "gossip"}, "method_not_allowed"),
        ("join", {"asset_type": "fan"}, "asset_type_not_allowed"),
        ("join", {"contract": "0" * 64}, "contract_mismatch"),
        ("join", {"spec": NO_BETA}, "bad_task"),
        ("evaluate", {}, "bad_task"),
        ("evaluate", {"arrays": {"weights": np.ones((1, 3))}}, "bad_task"),
        ("evaluate", {"arrays": {"weights": np.ones((2, 4))}}, "bad_task"),
        ("evaluate", {"arrays": {"weights": np.array([[1.0, np.nan, 0.0, 0.0]])}}, "bad_task"),
        ("evaluate", {"arrays": {"weights": np.ones((1, 200_000))}}, "message_too_large"),
    ],
)
def test_a_task_that_is_not_for_this_site_is_refused(make_site: Make, kind: str, changes: Any, code: str) -> None:
    site = make_site()
    answer = site.ask(kind, **changes)
    assert isinstance(answer, SiteRefusal)
    assert (answer.code, answer.reason) == (code, REASONS[code])
    assert (answer.kind, answer.run_id, answer.round) == (kind, "a" * 32, 1)


@pytest.mark.parametrize(
    "frame",
    [
        b"", b"junk", b"BLS1" + b"\xff" * 40,
        pack_arrays({"type": "task", "kind": "join"}, {}),
        encode(Hello(site_id="plant-1", version="1")),
    ],
)
def test_bytes_that_are_no_task_are_refused(make_site: Make, frame: bytes) -> None:
    message = decode(make_site().door.answer(frame), 1 << 20)
    assert isinstance(message, SiteRefusal) and message.code == "bad_task"


def test_the_policy_decides_which_messages_leave_and_how_many(make_site: Make, policy: SitePolicy) -> None:
    joins_only = policy.model_copy(update={"messages": ("join",)})
    site = make_site(policy=joins_only)
    assert isinstance(site.ask("join"), SiteUpdate)
    assert site.refusal_code("evaluate", arrays={"weights": np.ones((1, 4))}) == "message_not_allowed"


def test_the_policy_decides_for_which_machines_the_site_takes_part(make_site: Make, policy: SitePolicy) -> None:
    """Though the site has such a machine."""
    others_only = policy.model_copy(update={"asset_types": ("fan",)})
    assert make_site(policy=others_only).refusal_code("join") == "asset_type_not_allowed"


def test_an_answer_over_the_policys_size_is_not_sent(make_site: Make, policy: SitePolicy, tmp_path: Path) -> None:
    classes = "".join(f'[[fault_classes]]\nname = "c{number}"\nseverity = 1\n' for number in range(40))
    path = tmp_path / "wide.toml"
    path.write_text(site_text := (tmp_path / "asset_type.toml").read_text() + classes)
    assert "c39" in site_text
    site = make_site(asset_type=AssetType.from_toml(path), policy=policy.model_copy(update={"max_message_bytes": 4096}))
    assert site.refusal_code("evaluate", arrays={"weights": np.zeros((42, 4))}) == "message_too_large"
    (entry,) = ledger_check.verify(site.folder / "ledger.jsonl")
    assert entry["message"] == "refusal"


@pytest.mark.parametrize(("n_rows", "code"), [(25, "too_few_samples"), (26, None)])
def test_a_site_with_few_rows_answers_nothing_but_a_refusal(
    make_site: Make, make_table: Make, n_rows: int, code: Any
) -> None:
    """25 rows leave 19 for training after the hold-out, 26 leave 20: the limit of 20 counts training rows."""
    site = make_site(make_table(n_rows), test_fraction=0.25)
    n_train = len(dataset_of(site).train)
    assert (n_train < 20) == (code is not None)
    for kind, arrays in (("join", {}), ("evaluate", {"weights": np.ones((1, 4))})):
        answer = site.ask(kind, arrays=arrays)
        assert (answer.code if isinstance(answer, SiteRefusal) else None) == code


def test_an_evaluation_on_a_handful_of_held_out_rows_is_refused(make_site: Make, make_table: Make) -> None:
    site = make_site(make_table(40), test_fraction=0.1)
    assert len(dataset_of(site).test) == 4
    assert site.refusal_code("evaluate", arrays={"weights": np.ones((1, 4))}) == "too_few_samples"
    assert isinstance(site.ask("join"), SiteUpdate)


def plant_canary(rows: list[list[Any]], column: int, value: str) -> list[list[Any]]:
    rows[7][column] = value
    return rows


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        (0, f"x{CANARY}", "bad_data"),
        (1, CANARY, "bad_data"),
        (3, f"class{CANARY}", "bad_data"),
    ],
)
def test_refusals_never_quote_the_data(
    make_site: Make, make_table: Make, column: int, value: str, code: str, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = make_site(plant_canary(make_table(60), column, value))
    site.door.warm_up()
    frame = site.door.answer(encode(site.task("join")))
    message = decode(frame, 1 << 20)
    assert isinstance(message, SiteRefusal) and message.code == code
    outside = [frame, (site.folder / "ledger.jsonl").read_bytes(), "".join(capsys.readouterr()).encode()]
    told = [record.getMessage().encode() for record in caplog.records if record.name != PRIVATE.name]
    assert len(told) == 2, "the console was told nothing at all"
    outside += told
    assert not any(CANARY.encode() in text for text in outside)


def test_the_private_log_reaches_no_logger_above_it() -> None:
    heard: list[logging.LogRecord] = []

    class Console(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record)

    handler = Console()
    above = [logging.getLogger(name) for name in ("", "ballast", "ballast.site")]
    for logger in above:
        logger.addHandler(handler)
    try:
        PRIVATE.warning("a row")
    finally:
        for logger in above:
            logger.removeHandler(handler)
    assert heard == []


def test_the_detail_goes_to_the_sites_own_log(make_site: Make, make_table: Make, tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "own.log")
    PRIVATE.addHandler(handler)
    try:
        site = make_site(plant_canary(make_table(60), 3, "melted"))
        assert site.refusal_code() == "bad_data"
    finally:
        PRIVATE.removeHandler(handler)
        handler.close()
    assert "line 8: label 'melted' is not a class of pump" in (tmp_path / "own.log").read_text()


def test_a_plant_without_a_fault_takes_part(make_site: Make, make_table: Make) -> None:
    site = make_site(make_table(60, classes=("healthy",)))
    assert isinstance(site.ask("join"), SiteUpdate)


@pytest.mark.parametrize("spoil", ["no file", "empty file"])
def test_data_that_cannot_train_are_refused_with_their_code(make_site: Make, spoil: str) -> None:
    site = make_site(None)
    if spoil == "no file":
        site.source.path.unlink()
    if spoil == "empty file":
        site.source.path.write_text("")
    assert site.refusal_code() == "no_data"


def test_a_site_recovers_when_its_data_are_mended(make_site: Make, make_table: Make, write_csv: Make) -> None:
    site = make_site(plant_canary(make_table(60), 0, "broken"))
    assert site.refusal_code() == "bad_data"
    write_csv(make_table(60), "site/data.csv")
    assert isinstance(site.ask("join"), SiteUpdate)


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
