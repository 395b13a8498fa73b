"""What the one door refuses, and that a refusal says nothing of the rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.wire.codec import decode, encode, pack_arrays
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate
from services.site_agent.logs import PRIVATE
from services.site_agent.rules.policy import REASONS, SitePolicy
from services.site_agent.vault.reader import Vault
from tests.ledgers import verified

Make = Callable[..., Any]
CANARY = "739158264013"
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
    (entry,) = verified(site.folder / "ledger.jsonl")
    assert entry["message"] == "refusal"


@pytest.mark.parametrize(("n_rows", "code"), [(25, "too_few_samples"), (26, None)])
def test_a_site_with_few_rows_answers_nothing_but_a_refusal(
    make_site: Make, make_table: Make, n_rows: int, code: Any
) -> None:
    """25 rows leave 19 for training after the hold-out, 26 leave 20: the limit of 20 counts training rows."""
    site = make_site(make_table(n_rows), test_fraction=0.25)
    n_train = len(Vault(site.source, site.asset_type).current().train)
    assert (n_train < 20) == (code is not None)
    for kind, arrays in (("join", {}), ("evaluate", {"weights": np.ones((1, 4))})):
        answer = site.ask(kind, arrays=arrays)
        assert (answer.code if isinstance(answer, SiteRefusal) else None) == code


def test_an_evaluation_on_a_handful_of_held_out_rows_is_refused(make_site: Make, make_table: Make) -> None:
    site = make_site(make_table(40), test_fraction=0.1)
    assert len(Vault(site.source, site.asset_type).current().test) == 4
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


@pytest.mark.parametrize("spoil", ["one class", "no file", "empty file"])
def test_data_that_cannot_train_are_refused_with_their_code(make_site: Make, make_table: Make, spoil: str) -> None:
    site = make_site(make_table(60, classes=("leak",)) if spoil == "one class" else None)
    if spoil == "no file":
        site.source.path.unlink()
    if spoil == "empty file":
        site.source.path.write_text("")
    assert site.refusal_code() == ("one_class_only" if spoil == "one class" else "no_data")


def test_a_plant_without_a_fault_takes_part_where_its_policy_says_so(
    make_site: Make, make_table: Make, policy: SitePolicy
) -> None:
    site = make_site(make_table(60, classes=("healthy",)), policy=policy.model_copy(update={"one_class": True}))
    assert isinstance(site.ask("join"), SiteUpdate)


def test_a_site_recovers_when_its_data_are_mended(make_site: Make, make_table: Make, write_csv: Make) -> None:
    site = make_site(plant_canary(make_table(60), 0, "broken"))
    assert site.refusal_code() == "bad_data"
    write_csv(make_table(60), "site/data.csv")
    assert isinstance(site.ask("join"), SiteUpdate)
