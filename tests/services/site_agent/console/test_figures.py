"""The pages of a site tell what is so: figures, drift, policy, what wants attention."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from services.contracts.wire.messages import Kind, Reveal
from services.site_agent.console import pages, policy_words
from services.site_agent.console.server import DOCUMENTS, PAGES
from services.site_agent.console.site_state import SiteState, attention
from services.site_agent.health import note
from services.site_agent.rules.policy import SitePolicy
from tests.ledgers import verified
from tests.services.site_agent.conftest import RUN, table
from tests.services.site_agent.console.conftest import Reader, content_of, settings_of


def test_every_page_shows_its_figures_and_writes_nothing(answered: Any, seen: Reader) -> None:
    before = content_of(answered.folder)
    entries = verified(answered.folder / "ledger.jsonl")
    size, rows = sum(entry["bytes"] for entry in entries), entries[-2]["exposure"]["rows"]
    first = seen.text("/")
    assert "plant-1" in first and "Nothing needs attention" not in first and "Tasks were refused" in first
    assert re.search(r"Agent connected seen \d+ s ago; no hello yet", first)
    assert "Runs taken part in 2" in first and "Ledger sound 9 entries" in first
    assert f"Rows exposed 0 of {rows}; 0 allowed" in first and "Drift 0.00 no more than chance" in first
    assert f"{size / 1e3:.3g} kB" in first and "9 messages since midnight UTC" in first
    ledger = seen.text("/ledger")
    assert "Sound 9 entries" in ledger and "refused refusal join method_not_allowed" in ledger
    newest, oldest = ledger.index("refusal join"), ledger.rindex("update join")
    assert newest < ledger.index("update round") < oldest
    for field, shape in entries[2]["shapes"].items():
        assert f"{field}({', '.join(map(str, shape))})".removesuffix("()") in ledger
    assert f"{entries[2]['bytes']} " in ledger and RUN[:8] in ledger and f" 0 of {rows} " in ledger
    exposure = seen.text("/exposure")
    assert f"0 of {rows} rows can be read off exactly" in exposure and "Answers 8 in 2 runs" in exposure
    assert "the policy allows 0" in exposure and "Runs left today 48" in exposure
    drift = seen.text("/drift")
    assert all(re.search(rf"{name} 0\.00 as before", drift) for name in ("flow", "ripple", "oil"))
    policy = seen.text("/policy")
    assert str(answered.folder / "policy.toml") in policy and "You own it" in policy
    assert "level-bundle" in policy and "fedavg" not in policy
    assert content_of(answered.folder) == before


def test_the_same_is_there_as_json(answered: Any, seen: Reader) -> None:
    entries = verified(answered.folder / "ledger.jsonl")
    found = seen.json("/ledger.json")
    assert found["sound"] and found["entries"] == list(entries[::-1]) and found["pages"] == 1
    first = seen.json("/overview.json")
    assert first["connection"]["connected"] and first["ledger"]["runs"] == 2
    assert first["ledger"]["bytes_today"] == first["ledger"]["bytes"] == sum(entry["bytes"] for entry in entries)
    assert first["ledger"]["last_answer"] == entries[-2]["time"]
    assert seen.json("/exposure.json")["by_differences"] == 0
    drift = seen.json("/drift.json")
    assert drift["drift"] == 0.0 and set(drift["sensors"]) == {"flow", "ripple", "oil"}
    policy = SitePolicy.from_toml(answered.folder / "policy.toml")
    assert SitePolicy.model_validate(seen.json("/policy.json")["policy"]) == policy
    assert set(DOCUMENTS) == {f"/{name}.json" for name in ("overview", "ledger", "exposure", "drift", "policy")}


def test_every_page_leads_to_the_same_as_json(seen: Reader) -> None:
    for path in PAGES:
        (address,) = re.findall(r'The same as JSON: <a href="([^"]+)">', seen.ask(path)[2])
        assert address in DOCUMENTS and address in (f"{path}.json", "/overview.json")
        seen.json(address)


def test_an_empty_site_says_what_to_do_next(
    tmp_path: Path, look: Callable[..., Reader], write_csv: Callable[..., Path]
) -> None:
    settings = settings_of(tmp_path / "new")
    write_csv(table(60), "new/data.csv")
    before = content_of(tmp_path / "new")
    seen = look(settings).enter()
    first = seen.text("/")
    assert "No agent is connected" in first and "no agent of plant-1 was ever connected from here" in first
    assert "Last answer none yet" in first and "Ledger sound 0 entries" in first and "no join yet" in first
    assert "Nothing has left yet" in seen.text("/ledger")
    assert "Nothing has been answered" in seen.text("/exposure") and "No join yet" in seen.text("/drift")
    assert seen.json("/drift.json")["drift"] is None
    assert content_of(tmp_path / "new") == before, "no record is begun by who looks"


def test_the_first_rows_are_not_begun_by_who_looks_where_a_record_is_there(answered: Any, seen: Reader) -> None:
    import sqlite3

    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    with base:
        base.execute("DROP TABLE first_rows")  # a record of before there was a drift
    base.close()
    assert "No join yet" in seen.text("/drift")
    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    assert base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'first_rows'").fetchone() == (0,)
    base.close()
    assert "Answers 8 in 2 runs" in seen.text("/exposure")


def test_readings_that_moved_come_first(answered: Any, seen: Reader, write_csv: Callable[..., Path]) -> None:
    header, *rows = table(100)
    write_csv([header, *([row[0], row[1], min(row[2] + 2.0, 4.0), row[3]] for row in rows)], "site/data.csv")
    drift = seen.text("/drift")
    assert re.search(r"Since the first run oil 0\.\d+ has moved", drift) and re.search(r"flow 0\.\d\d as before", drift)
    assert "Readings have moved since the first run 1 of 3 sensors, the furthest by 0." in seen.text("/")


def test_a_drift_is_kept_for_a_minute_and_then_found_anew(answered: Any, write_csv: Callable[..., Path]) -> None:
    now = [0.0]
    state = SiteState(settings_of(answered.folder), clock=lambda: now[0])
    before = state.drift()["rows"]
    write_csv(table(200), "site/data.csv")
    assert state.drift()["rows"] == before < 100
    now[0] = 61.0
    assert state.drift()["rows"] > 100


def test_data_that_cannot_be_read_are_looked_at_again_at_once(answered: Any, write_csv: Callable[..., Path]) -> None:
    state = SiteState(settings_of(answered.folder), clock=lambda: 0.0)
    write_csv([["flow", "label"], [1, "healthy"]], "site/data.csv")
    assert state.drift()["trouble"] is not None and state.drift()["drift"] is None
    write_csv(table(200), "site/data.csv")
    assert state.drift()["trouble"] is None and state.drift()["rows"] > 100


def test_when_an_agent_was_seen_is_told_in_utc_and_of_none_that_there_was_none(answered: Any) -> None:
    settings = settings_of(answered.folder)
    os.utime(note(settings), (1_700_000_000, 1_700_000_000))
    found = SiteState(settings).connection()
    assert not found["connected"] and found["seen"] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    note(settings).unlink()
    assert SiteState(settings).connection()["seen"] is None


def test_what_wants_attention_is_in_order() -> None:
    sound = {
        "ledger": {"sound": True, "problems": []}, "policy": {"trouble": None}, "connection": {"connected": True},
        "exposure": {"trouble": None, "by_differences": 2, "rows": 10, "exposure_limit": 0.2, "runs_left_today": 1},
        "drift": {"trouble": None, "drift": 0.0},
    }
    assert attention(sound) == []
    assert attention(sound | {"exposure": sound["exposure"] | {"runs_left_today": None}}) == [], "without a limit"
    above = sound | {"exposure": sound["exposure"] | {"by_differences": 3, "runs_left_today": 0}}
    assert [each["kind"] for each in attention(above)] == ["bad", "warn"]
    sensors = {"a": 0.25, "b": 0.3, "c": 0.5}
    lifted = sound | {"exposure": sound["exposure"] | {"by_differences": 10, "unaccounted": 3}}
    assert [(each["kind"], each["what"]) for each in attention(lifted)] == [
        ("info", "Answers said more than can be counted")
    ]
    moved = sound | {"drift": {"trouble": None, "drift": 0.5, "chance": 0.25, "sensors": sensors}}
    assert [each["why"] for each in attention(moved)] == ["2 of 3 sensors, the furthest by 0.50"]
    gone = above | {"connection": {"connected": False, "told": "gone"}, "ledger": {"sound": False, "problems": ["x"]}}
    assert [each["why"] for each in attention(gone)][0] == "x" and attention(gone)[-1]["why"] == "gone"


def test_every_line_of_a_policy_is_on_its_page() -> None:
    policy = json.loads(SitePolicy(methods=("fedavg",)).model_dump_json())
    page = pages.policy({"path": "p", "policy": policy, "trouble": None})
    elsewhere = {"methods", "asset_types", "messages", "reveal", "peers", "auditors"}
    told = {name for name, *_ in [*policy_words.switches(policy), *policy_words.limits(policy)]}
    assert told | elsewhere == set(SitePolicy.model_fields)
    assert set(policy_words.MESSAGES) == set(get_args(Kind)) and set(policy_words.REVEALS) == set(get_args(Reveal))
    more = policy | {"messages": ["join"], "own_scores": True}
    allowed = pages.policy({"path": "p", "policy": more, "trouble": None})
    assert page.count("may leave</span>") + 2 == allowed.count("may leave</span>")
