"""Each check finds the fault that is planted for it, and says what to do."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.backend.disk_space import LEAST_BYTES
from api.backend.flows_process import HANGS
from api.system import checks, facts, host_checks
from api.system.finding import Finding, span
from services.contracts.history.events import Webhook
from services.contracts.history.run import Run
from services.contracts.history.site import Site
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from tests.vanishing import after_listing

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
KEY, OTHER = Path("/home/b/nats/coordinator.nk"), Path("/home/b/ballast.toml")


def site(**changes: Any) -> Site:
    return Site.model_validate(
        {"site_id": "plant-1", "public_key": "U", "enrolled_at": NOW, "updated_at": NOW, "last_seen": NOW} | changes
    )


def run(age: timedelta = timedelta(), status: str = "running") -> Run:
    plan = Plan(name="weekly", asset_type="rig")
    return Run(run_id="a" * 32, plan=plan, status=status, created_at=NOW, updated_at=NOW - age)


def test_all_runs_that_nobody_drives_are_named() -> None:
    waiting = [run().model_copy(update={"run_id": each * 32}) for each in "ab"]
    found = checks.runs(waiting, NOW, flows_alive=False)
    assert found.state == "fail" and found.said.endswith(f"{'a' * 32}, {'b' * 32}")


def hook(**changes: Any) -> Webhook:
    return Webhook.model_validate(
        {"webhook_id": "a" * 12, "url": "https://x", "created_by": "me", "created_at": NOW, "due_at": NOW,
         "last_number": 0} | changes
    )


@pytest.mark.parametrize(("finding", "state", "said"), [
    (host_checks.port("the API", 8000, free=True, ours=False), "ok", "free"),
    (host_checks.port("the API", 8000, free=False, ours=True), "ok", "answers"),
    (host_checks.port("the API", 8000, free=False, ours=False), "fail", "held by something that is not the API"),
    (host_checks.port("the API", 8000, free=False, ours=False, hangs=True), "fail", "holds it and does not answer"),
    (host_checks.clock(NOW, None, NOW - DAY), "ok", "goes with"),
    (host_checks.clock(NOW, NOW + SECOND, NOW), "ok", "goes with"),
    (host_checks.clock(NOW, NOW + 5 * SECOND, None), "warn", "5.0 seconds apart"),
    (host_checks.clock(NOW, NOW - 31 * SECOND, None), "fail", "31.0 seconds apart"),
    (host_checks.clock(NOW, None, NOW + DAY), "fail", "24 hours in the future"),
    (host_checks.disk(Path("/h"), 10**10, 10**11), "ok", "10.0 of 100 GB"),
    (host_checks.disk(Path("/h"), 10**9, 10**11), "warn", "1.0 of 100 GB"),
    (host_checks.disk(Path("/h"), 10**8, 10**11), "fail", "0.1 of 100 GB"),
    (host_checks.permissions({KEY: (0o100600, 7), OTHER: (0o100600, 7)}, 7), "ok", "2 files"),
    (host_checks.permissions({KEY: (0o100640, 7)}, 7), "fail", "mode 0640"),
    (host_checks.permissions({KEY: (0o100604, 7)}, 7), "fail", "mode 0604"),
    (host_checks.permissions({KEY: (0o100600, 8)}, 7), "fail", "another user"),
    (host_checks.certificate("x", (NOW, NOW + 31 * DAY), NOW, "renew"), "ok", "2030-02-01"),
    (host_checks.certificate("x", (NOW - DAY, NOW + 29 * DAY), NOW, "renew"), "warn", "29 days more"),
    (host_checks.certificate("x", (NOW - DAY, NOW), NOW, "renew"), "fail", "expired"),
    (host_checks.certificate("x", (NOW + DAY, NOW + 99 * DAY), NOW, "renew"), "fail", "holds from 2030-01-02"),
    (host_checks.certificate("x", None, NOW, "renew"), "fail", "cannot be read"),
    (checks.audit(True, 5, ""), "ok", "5 entries"),
    (checks.audit(False, 5, "event 3 is missing"), "fail", "event 3"),
    (checks.registry("m", (), (), (), ""), "ok", "agrees"),
    (checks.registry("m", (), {"10", "9"}, (), ""), "fail", "lacks version 9, 10"),
    (checks.registry("m", ("alias moved",), (), (), ""), "warn", "alias moved"),
    (checks.registry("m", (), (), {"4"}, ""), "warn", "does not know version 4"),
    (checks.registry("m", (), (), (), "digest is another"), "fail", "champion cannot be loaded"),
    (checks.registry("m", ("alias moved",), (), {"4"}, "", "it is gone"), "fail", "cannot be checked: it is gone"),
    (checks.sites([site()], NOW), "ok", "1 active"),
    (checks.sites([site(last_seen=None)], NOW), "warn", "plant-1 was never there"),
    (checks.sites([site(last_seen=NOW - DAY)], NOW), "warn", "plant-1 is silent for 1 d"),
    (checks.sites([site(notice="2 agents answer")], NOW), "warn", "2 agents"),
    (checks.flows(True), "ok", "runs"),
    (checks.flows(False), "warn", "no schedule"),
    (checks.flows(True, HANGS), "ok", "runs"),
    (checks.flows(True, HANGS + SECOND), "fail", "has not looked for what waits for 2 minutes"),
    (checks.flows(False, DAY), "warn", "no schedule"),
    (checks.runs([], NOW, flows_alive=False), "ok", "0 unfinished"),
    (checks.runs([run()], NOW, flows_alive=True), "ok", "1 unfinished"),
    (checks.runs([run()], NOW, flows_alive=False), "fail", "a" * 32),
    (checks.runs([run(DAY)], NOW, flows_alive=True), "warn", "stood still for 24 hours"),
    (checks.runs([run(DAY, "pending")], NOW, flows_alive=True), "warn", "weekly"),
    (checks.webhooks([hook()]), "ok", "1, none failing"),
    (checks.webhooks([hook(failures=2, last_failure="500")]), "warn", "failed 2 times: 500"),
    (checks.webhooks([hook(disabled_at=NOW, last_failure="404")]), "warn", "disabled: 404"),
    (checks.backup(NOW - DAY, NOW), "ok", "24 hours old"),
    (checks.backup(NOW - 8 * DAY, NOW), "warn", "8 days old"),
    (checks.backup(NOW + DAY, NOW), "warn", "24 hours after now: the clock was put back"),
    (checks.backup(NOW + host_checks.SKEW_WARN, NOW), "ok", "seconds old"),
    (checks.backup(None, NOW), "warn", "none was ever made"),
])
def test_a_planted_fault_is_found(finding: Finding, state: str, said: str) -> None:
    hold(finding, state, said)


def hold(finding: Finding, state: str, said: str) -> None:
    assert finding.state == state and said in finding.said
    assert bool(finding.todo) == (state != "ok"), "what is wrong says what to do, and nothing else does"


ROUND = timedelta(seconds=Plan(name="weekly", asset_type="rig").round_deadline_seconds)
PATIENCE = timedelta(seconds=Plan(name="weekly", asset_type="rig").absence_patience_seconds)
ELSEWHERE, HOME = Path("/home/other"), Path("/home/b")


@pytest.mark.parametrize(("finding", "state", "said"), [
    (host_checks.port("the API", 8000, free=False, ours=True, other=ELSEWHERE), "fail", "home folder, /home/other"),
    (host_checks.clock(NOW, NOW - host_checks.SKEW_WARN, NOW + host_checks.SKEW_WARN), "ok", "goes with"),
    (host_checks.clock(NOW, NOW + host_checks.SKEW_FAIL, None), "warn", "30.0 seconds apart"),
    (host_checks.clock(NOW, NOW, NOW + 3 * SECOND), "fail", "3.0 seconds in the future"),
    (host_checks.disk(Path("/h"), host_checks.LOW_BYTES, 10**11), "ok", "2.0 of 100 GB"),
    (host_checks.disk(Path("/h"), host_checks.LOW_BYTES - 1, 10**11), "warn", "2.0 of 100 GB"),
    (host_checks.disk(Path("/h"), LEAST_BYTES, 10**11), "warn", "0.2 of 100 GB"),
    (host_checks.disk(Path("/h"), LEAST_BYTES - 1, 10**11), "fail", "0.2 of 100 GB"),
    (host_checks.permissions({KEY: (0o100600, 7)}, 7, {HOME: 0o40775}), "ok", "1 files"),
    (host_checks.permissions({KEY: (0o100600, 7)}, 7, {HOME: 0o40772}), "fail", "mode 0772: anybody can put files"),
    (host_checks.permissions({KEY: (0o100600, 7)}, 0), "fail", "another user (number 7)"),
    (host_checks.certificate("x", (NOW, NOW + host_checks.EXPIRES_SOON), NOW, "renew"), "warn", "30 days more"),
    (checks.registry("m", (), {"3"}, (), "digest is another"), "fail", "champion cannot be loaded"),
    (checks.registry("m", (), (), {"10", "9"}, ""), "warn", "does not know version 9, 10"),
    (checks.runs([run(checks.STUCK + ROUND + PATIENCE)], NOW, flows_alive=True), "ok", "1 unfinished"),
    (checks.runs([run(checks.STUCK + ROUND + PATIENCE + SECOND)], NOW, flows_alive=True), "warn", "has stood still"),
    (checks.backup(NOW - checks.BACKUP_AGE, NOW), "ok", "7 days old"),
    (checks.backup(None, NOW, NOW - DAY), "warn", "since this home folder was restored from one, 24 hours ago"),
    (checks.backup(NOW - DAY, NOW, NOW - 2 * DAY), "ok", "24 hours old"),
    (checks.backup(None, NOW, NOW + DAY), "warn", "restored from one, 24 hours after now: the clock was put back"),
])
def test_what_is_on_the_edge(finding: Finding, state: str, said: str) -> None:
    hold(finding, state, said)


def test_a_webhook_that_was_given_up_is_told_once() -> None:
    found = checks.webhooks([hook(disabled_at=NOW, failures=9, last_failure="404"), hook(webhook_id="b" * 12)])
    assert found.said == f"{'a' * 12} is disabled: 404"


@pytest.mark.parametrize(("seconds", "said"), [
    (119.9, "119.9 seconds"), (120.0, "2 minutes"), (7199.0, "120 minutes"), (7200.0, "2 hours"), (172800.0, "2 days"),
])
def test_a_span_is_told_in_the_largest_unit_of_which_it_has_two(seconds: float, said: str) -> None:
    assert span(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize("name", ["secrets/prefect", "prefect-client.toml", "prefect-server.toml", "ballast.db-wal"])
def test_each_file_that_opens_something_is_looked_at(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hush")
    path.chmod(0o600)
    settings = Settings.load(tmp_path, {})
    assert facts.secrets(settings).state == "ok"
    path.chmod(0o644)
    found = facts.secrets(settings)
    assert found.state == "fail" and str(path) in found.said


def test_secrets_that_go_while_they_are_looked_for_are_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the log of a database does that nobody has open any more, the copy for a backup, and a forgotten version."""
    tmp_path.chmod(0o700)
    (tmp_path / "models").mkdir()
    (tmp_path / "ballast.toml").write_text("")
    for name in ("ballast.db-wal", "models/x.db"):
        (tmp_path / name).write_text("x")
    settings = Settings.load(tmp_path, {})

    def go() -> None:
        shutil.rmtree(tmp_path / "models")
        (tmp_path / "ballast.db-wal").unlink()
        (tmp_path / "ballast.toml").unlink()

    after_listing(monkeypatch, tmp_path, go)
    assert facts.secrets(settings).state == "ok"


def test_settings_that_go_before_they_are_read_are_judged_by_their_mode(tmp_path: Path) -> None:
    path = tmp_path / "ballast.toml"
    path.write_text("")
    found = path.stat()
    path.unlink()
    assert not facts._may_be_read(path, found)


def test_secrets_behind_a_link_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted/prefect").write_text("hush")
    (tmp_path / "mounted/prefect").chmod(0o644)  # whatever this process lets others do
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home/secrets").symlink_to(tmp_path / "mounted")
    found = facts.secrets(Settings.load(tmp_path / "home", {}))
    assert found.state == "fail" and "secrets/prefect" in found.said
