"""What the pages make of plain data: every text stays words, and figures stand where they are said to."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from services.looks.parts import UNKNOWN, Html
from services.site_agent.console import pages
from services.site_agent.console.ledger_view import PAGE
from services.site_agent.rules.policy import SitePolicy
from tests.services.site_agent.console.test_damaged_files import HOSTILE

EXPOSURE = {
    "trouble": None, "answers": 8, "rows": 40, "runs": 2, "by_differences": 3, "by_pairs": 1, "exposure_limit": 0.1,
    "leverage": 0.5, "leveraged": 2, "leverage_limit": 0.25, "runs_left_today": 7, "told": ["nothing else"],
}
DRIFT = {
    "trouble": None, "drift": 0.5, "since": "2026-01-01T00:00:00", "chance": 0.25, "rows": 20, "told": [],
    "sensors": {"flow": 0.25, "oil": 0.5},
}
LEDGER = {
    "trouble": None, "sound": True, "problems": [], "count": PAGE + 1, "bytes": 9, "page": 2, "pages": 2,
    "entries": [{"sequence": 1, "message": "hello"}],
}


def words(page: Html) -> str:
    """Words of a page, without its markup, one blank between them."""
    return " ".join(re.sub(r"<[^>]+>", " ", str(page)).split())


def stays_words(page: Html) -> bool:
    return "&lt;script&gt;" in page and "<script" not in page and "<img" not in page


def policy(**fields: Any) -> dict[str, Any]:
    told = json.loads(SitePolicy(methods=("fedavg",)).model_dump_json()) | fields
    return {"path": "policy.toml", "policy": told, "trouble": None}


def test_what_wants_attention_and_what_is_wrong_with_a_ledger_stay_words() -> None:
    listed = [{"kind": "bad", "what": "It is", "why": HOSTILE, "page": "/ledger"}]
    found = {
        "site_id": "plant-1", "connection": {"connected": False, "told": "away"}, "attention": listed,
        "ledger": {"sound": True, "entries": 0}, "exposure": EXPOSURE, "drift": DRIFT,
    }
    assert stays_words(pages.overview(found))
    assert stays_words(pages.exposure(EXPOSURE | {"told": [HOSTILE]}))
    assert stays_words(pages.ledger(LEDGER | {"sound": False, "problems": [HOSTILE]}))


def test_all_that_wants_attention_is_listed() -> None:
    kinds = ("bad", "warn", "info")
    listed = [{"kind": kinds[k % 3], "what": f"It is {k}.", "why": f"Since {k}.", "page": ""} for k in range(8)]
    found = {
        "site_id": "plant-1", "connection": {"connected": False, "told": "away"}, "attention": listed,
        "ledger": {"sound": True, "entries": 0}, "exposure": EXPOSURE, "drift": DRIFT,
    }
    told = words(pages.overview(found))
    assert all(f"It is {k}. Since {k}." in told for k in range(8))


def test_of_many_problems_of_a_ledger_the_first_are_listed_and_the_others_counted() -> None:
    told = words(pages.ledger(LEDGER | {"sound": False, "problems": [f"problem {k}." for k in range(23)]}))
    assert "problem 0." in told and "problem 19. and 3 more" in told and "problem 20." not in told
    assert "more" not in words(pages.ledger(LEDGER | {"sound": False, "problems": ["problem 0."] * 20}))


def test_a_page_of_the_ledger_says_which_entries_it_has() -> None:
    told = words(pages.ledger(LEDGER))
    assert f"Entries {PAGE + 1} to {PAGE + 1} of {PAGE + 1}" in told
    assert "None" not in told and f"hello {UNKNOWN} {UNKNOWN}" in told, "an entry without round and bytes"


@pytest.mark.parametrize(("left", "told"), [(7, "7"), (0, "0"), (None, "any")])
def test_each_limit_of_the_exposure_is_its_own(left: int | None, told: str) -> None:
    page = words(pages.exposure(EXPOSURE | {"runs_left_today": left}))
    assert "Rows exposed 3 of 40; 4 allowed" in page and "2 rows near 1, 10 allowed" in page
    assert f"Runs left today {told} in 24 hours" in page


def test_a_sensor_has_moved_past_chance_and_not_at_it() -> None:
    page = words(pages.drift(DRIFT))
    assert re.search(r"oil 0\.50 has moved flow 0\.25 as before", page)


def test_a_policy_says_with_whom_and_of_none_that_nothing_is_answered() -> None:
    page = words(pages.policy(policy(peers={"plant-2": "UKEY2", "plant-3": "UKEY3"}, auditors=["UAUDITOR"])))
    assert "plant-2: UKEY2; plant-3: UKEY3" in page and "Auditors UAUDITOR" in page
    page = words(pages.policy(policy(methods=[])))
    assert "those that the OEM names" in page and "Auditors none" in page
    assert "No method is listed, so no task is answered." in page


def test_a_method_that_is_not_known_and_limits_are_told_as_they_stand() -> None:
    page = words(pages.policy(policy(
        methods=["dreams"], max_runs_per_day=0, max_rounds_per_run=None, noise_delta=1e-6, leverage_limit=0.25,
    )))
    assert "dreams not known to this version" in page
    for line in ("max_runs_per_day 0 ", "max_rounds_per_run no limit ", "noise_delta 1e-06 ", "leverage_limit 0.25 "):
        assert line in page


@pytest.mark.parametrize("listed", [["sums"], ["each site"]])
def test_what_a_run_may_show_is_what_the_policy_lists(listed: list[str]) -> None:
    page = words(pages.policy(policy(reveal=listed)))
    for mode in ("sums", "each site"):
        assert f"{mode} {'may leave' if mode in listed else 'stays'} " in page


def test_an_agent_that_is_connected_tells_its_last_hello_in_utc() -> None:
    found = {
        "site_id": "plant-1", "connection": {"connected": True, "told": "seen 3 s ago"}, "attention": [],
        "ledger": {"sound": True, "entries": 1, "last_hello": datetime(2026, 3, 4, 5, 6, tzinfo=UTC)},
        "exposure": EXPOSURE, "drift": DRIFT,
    }
    page = words(pages.overview(found))
    assert "seen 3 s ago; last hello 2026-03-04 05:06 UTC" in page and "Ledger sound 1 entry" in page
