"""Whatever a site's files hold stays words, and files that fail are notices."""

from __future__ import annotations

import json
from typing import Any

from services.site_agent.console import pages
from services.site_agent.console.ledger_view import line
from services.site_agent.console.server import PAGES
from services.site_agent.health import note
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import SiteSettings
from tests.ledgers import verified
from tests.services.site_agent.console.conftest import Reader, forged

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def test_whatever_the_files_hold_stays_words(answered: Any, seen: Reader) -> None:
    path = answered.folder / "ledger.jsonl"
    last = verified(path)[-1]
    named = {"time": HOSTILE, "message": HOSTILE, "kind": HOSTILE, "run": HOSTILE, "shapes": {HOSTILE: [HOSTILE]}}
    odd: list[dict[str, Any]] = [
        named, {"shapes": 3, "bytes": "many", "round": None, "exposure": [], "masking": 1, "time": None},
        {"bytes": 10**400, "exposure": {"by_differences": float("nan"), "rows": -1}, "time": "2026-01-01"},
        {"time": "0001-01-01T00:00:00+23:00", "message": "hello"}, {"time": "9999-12-31T23:59:59-23:00"},
        {"bytes": float("inf"), "masking": {"message": HOSTILE, "words": 7}, "run": {"a": HOSTILE}, "kind": "\ud800"},
    ]
    for fields in odd:
        last = forged(last, **fields)
        with path.open("a") as file:
            file.write(json.dumps(last) + "\n")
    for page in PAGES:
        status, _, content = seen.ask(page)
        assert status == 200 and "<script" not in content and "<img" not in content, page
    assert "&lt;script&gt;" in seen.ask("/ledger")[2]
    assert seen.json("/ledger.json")["count"] == 15
    assert line(forged(last, bytes=True, round=2.0)).round == 2 and line(forged(last, bytes=True)).bytes is None


def test_names_of_sensors_policies_and_paths_are_escaped() -> None:
    found = {"drift": 0.5, "since": "2026-01-01T00:00:00", "chance": 0.1, "rows": 20, "sensors": {HOSTILE: 0.5},
             "told": [HOSTILE], "trouble": None}
    policy = json.loads(SitePolicy(methods=("fedavg",), auditors=(HOSTILE,)).model_dump_json())
    shown = [
        pages.drift(found), pages.drift(found | {"drift": None}), pages.exposure({"trouble": HOSTILE}),
        pages.policy({"path": HOSTILE, "policy": policy, "trouble": None}),
        pages.policy({"path": HOSTILE, "policy": None, "trouble": HOSTILE}), pages.ledger({"trouble": HOSTILE}),
    ]
    for page in shown:
        assert "&lt;script&gt;" in page and "<script" not in page and "<img" not in page


def test_files_that_fail_are_notices_and_never_a_traceback(answered: Any, seen: Reader) -> None:
    for path in answered.folder.glob("exposure.sqlite-*"):
        path.unlink()
    (answered.folder / "exposure.sqlite").write_bytes(b"no database at all" * 100)
    (answered.folder / "policy.toml").write_text("min_samples = 0\n")
    (answered.folder / "data.csv").unlink()
    note(SiteSettings.from_toml(answered.folder / "site.toml")).unlink()
    first = seen.text("/")
    assert "The policy cannot be read" in first and "min_samples" in first and "The data cannot be read" in first
    assert "Agent away no agent of plant-1 was ever connected" in first
    for page in PAGES:
        assert "Traceback" not in seen.text(page)
    assert "min_samples" in seen.text("/policy") and seen.json("/policy.json")["policy"] is None
    (answered.folder / "policy.toml").write_text(default_policy_text(("pump",)))
    assert "The exposure is not known" in seen.text("/exposure") and "fails" in seen.json("/exposure.json")["trouble"]
    (answered.folder / "ledger.jsonl").unlink()
    (answered.folder / "ledger.jsonl").mkdir()
    assert "cannot be read" in seen.text("/ledger") and "cannot be read" in seen.text("/")


def test_a_record_whose_numbers_were_changed_is_a_notice(answered: Any, seen: Reader) -> None:
    import sqlite3

    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    with base:
        base.execute("UPDATE sketch SET numbers = x'010203'")
        base.execute("UPDATE first_rows SET shares = x'01'")
    base.close()
    assert "the record is damaged" in seen.text("/exposure") and "it is damaged: no drift" in seen.text("/drift")


def test_first_rows_that_are_said_to_be_none_are_a_notice(answered: Any, seen: Reader) -> None:
    import sqlite3

    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    with base:
        base.execute("UPDATE first_rows SET rows = 0")
    base.close()
    for page in ("/", "/drift"):
        assert "it is damaged: no drift can be read from it" in seen.text(page)
    (found,) = (each for each in seen.json("/overview.json")["attention"] if each["page"] == "/drift")
    assert (found["kind"], found["what"]) == ("warn", "The data cannot be read")
