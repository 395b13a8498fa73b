"""A backup that is restored brings no plant back that was unlearned since, where a later state says so."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.backend.actor import Actor
from api.backend.wiring import Backend, open_backend
from api.cli.main import main
from api.cli.unlearned_again import unlearn_again
from api.models import unlearning
from api.models.schemas import Unlearning
from api.plans import service as plans
from api.recovery.restore import NOT_LOOKED, Restored, restore_backup
from api.runs import service as runs
from api.sites import service as sites
from api.sites.schemas import SiteEnrolment
from api.webhooks import service as webhooks
from api.webhooks.schemas import WebhookRequest
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.run import SiteTermsRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from tests.api.recovery.test_backup import NOWHERE, WORD, backed_up

ADA = Actor("ada", Role.ADMINISTRATOR)
PLANTS = ("east", "north", "south", "west")
RIG = AssetType.model_validate({
    "name": "rig", "features": [{"name": "flow", "unit": "l/min", "low": 0.0, "high": 1.0}],
    "fault_classes": [{"name": "healthy", "severity": 0}, {"name": "worn", "severity": 1}],
})
LATER = ("home", "backup")


@pytest.fixture
def service(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two models of four plants, and a plant that is enrolled and was never asked."""
    with open_backend(Settings.load(home, NOWHERE)) as backend:
        store = backend.store
        store.asset_types.add(RIG)
        for number, site in enumerate((*PLANTS, "harbour")):
            store.sites.enrol(site, f"U{number:055d}", ["rig"])
        for name in ("wear", "leak"):
            plan = store.plans.create(Plan(name=name, asset_type="rig", sites=PLANTS, reveal="each site")).plan
            run = store.runs.create_run(plan)
            terms = [SiteTermsRecord(site_id=site, weight=0.25, radius=0.0, n_samples=9) for site in plan.sites]
            store.runs.begin_run(run.run_id, terms)
            store.runs.finish_run(run.run_id, "completed", "done")
    return home


def unlearn(backend: Backend, name: str, site: str, purge: str = "promotion") -> str:
    wanted = Unlearning.model_validate({"site": site, "reason": "sold", "purge": purge})
    return unlearning.unlearn(backend, ADA, name, wanted).run_id


def restored(file: Path, service: Path, later: str | None, tmp_path: Path) -> Restored:
    """What comes of a backup, beside the home as it is now or a newer backup of it."""
    path = {None: None, "home": service, "backup": tmp_path / "newer"}[later]
    if later == "backup":
        backed_up(service, tmp_path / "newer")
    return restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE, later=path and (path, unlearn_again))


@pytest.mark.parametrize("later", LATER)
def test_plants_that_left_since_leave_again(service: Path, tmp_path: Path, later: str) -> None:
    """Two of one model, of which one run trains; and one that no run of the backup had."""
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        caught = backend.store.runs.create_run(backend.store.plans.get("wear").plan)
        file = backed_up(service, tmp_path / "b")
        backend.store.runs.finish_run(caught.run_id, "failed", "a test")
        for site, purge in (("east", "promotion"), ("west", "now")):
            backend.store.runs.finish_run(unlearn(backend, "wear", site, purge), "failed", "a test")
        run = backend.store.runs.create_run(backend.store.plans.get("leak").plan)
        terms = [SiteTermsRecord(site_id="harbour", weight=1.0, radius=0.0, n_samples=9)]
        backend.store.runs.begin_run(run.run_id, terms)
        backend.store.runs.finish_run(run.run_id, "completed", "done")
        unlearn(backend, "leak", "harbour")
    done = restored(file, service, later, tmp_path)
    assert len(done.unlearned) == 3 and done.notes == []
    assert [caught.run_id in line for line in done.unlearned] == [True, False, False], "said once, where it was ended"
    assert f"; run {caught.run_id}, caught in the middle by the backup, does not go on" in done.unlearned[0]
    with open_backend(Settings.load(tmp_path / "new", NOWHERE)) as backend:
        store = backend.store
        assert {each.site_id for each in store.sites.list_sites() if each.status == "removed"} == {
            "east", "west", "harbour"
        }
        assert store.runs.get_run(caught.run_id).status == "cancelled", "the plants are in it"
        assert store.plans.get("wear").plan.sites == ("north", "south") and not store.runs.unfinished_runs("leak")
        (due,) = store.leavings.due()
        assert due.leaving.site_id == "east" and not due.leaving.at_once and due.status == "failed"
        (run,) = store.runs.unfinished_runs("wear")
        assert (run.leaving.site_id, run.leaving.at_once, run.plan.sites) == ("west", True, ("north", "south"))
        assert done.unfinished == [run.run_id] and store.audit.verify_chain().ok
        asked = store.audit.list_events(action="model.unlearn")
        assert [each.after["site"] for each in asked] == ["west", "east"]


@pytest.mark.parametrize("later", LATER)
def test_what_was_not_wanted_is_not_done_again_and_what_else_was_ended_is_told(
    service: Path, tmp_path: Path, later: str
) -> None:
    file = backed_up(service, tmp_path / "b")
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        run_id = unlearn(backend, "wear", "east")
        runs.cancel(backend, ADA, run_id)
        backend.store.runs.finish_run(run_id, "cancelled", "a test")
        backend.store.runs.finish_run(unlearn(backend, "wear", "west"), "completed", "a test")
        key = "UBWSB62CQTBKOE645MLWXLOMIO4I2ZYGIC7WCCBOXCQ74R6AMSLSYREL"
        sites.enrol(backend, ADA, SiteEnrolment(site_id="west", public_key=key, asset_types=("rig",)))
        sites.suspend(backend, ADA, "north", "its key is on a lost laptop")
    done = restored(file, service, later, tmp_path)
    assert done.unlearned == []
    back, removed, suspended = done.notes
    assert "site west was unlearned" in back and "`ballast model unlearn wear --site west`" in back
    assert "site.remove of site:east" in removed
    assert "site.suspend of site:north (its key is on a lost laptop); it is as before that" in suspended
    with open_backend(Settings.load(tmp_path / "new", NOWHERE)) as backend:
        assert {each.status for each in backend.store.sites.list_sites()} == {"active"}
        assert backend.store.leavings.due() == [] and backend.store.runs.unfinished_runs() == []


@pytest.mark.parametrize("later", LATER)
def test_a_run_that_was_cancelled_since_goes_on_and_that_is_told(service: Path, tmp_path: Path, later: str) -> None:
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        caught = {name: backend.store.runs.create_run(backend.store.plans.get(name).plan) for name in ("wear", "leak")}
        file = backed_up(service, tmp_path / "b")
        ended = caught["wear"].run_id
        runs.cancel(backend, ADA, ended, "the bench was wrong")
        backend.store.runs.finish_run(ended, "cancelled", "an operator cancelled the run")
        backend.store.runs.finish_run(caught["leak"].run_id, "completed", "done")
        spare = backend.store.runs.create_run(backend.store.plans.get("wear").plan).run_id  # no backup has it
        runs.cancel(backend, ADA, spare)
    done = restored(file, service, later, tmp_path)
    assert set(done.unfinished) == {each.run_id for each in caught.values()}
    (note,) = done.notes
    assert f"run.cancel of run:{ended} (the bench was wrong); it is as before that, and goes on" in note
    assert f"`ballast run cancel {ended}`" in note
    assert main(["run", "cancel", ended, "--home", str(tmp_path / "new")]) == 0, "also before anything is started"


def test_what_a_restore_sends_to_trains_and_lets_in_again_is_told(service: Path, tmp_path: Path) -> None:
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        wanted = WebhookRequest(url="https://hooks.example.com/x", kinds=("run.failed",))
        backend.store.plans.create(Plan(name="spare", asset_type="rig"))
        hook = webhooks.add(backend, ADA, wanted).webhook.webhook_id
        file = backed_up(service, tmp_path / "b")
        webhooks.remove(backend, ADA, hook, "not ours any more")
        plans.set_paused(backend, ADA, "leak", True)
        plans.set_archived(backend, ADA, "wear", True)
        plans.delete(backend, ADA, "spare")
        for actor in ("code:c7b4dc595c8b", "ada"):
            backend.store.audit.append(actor=actor, role=None, action="site.enrol", target=f"site:of-{actor[:3]}")
        backend.store.audit.append(actor="ada", role=None, action="key.replace", target="key:webhooks.key")
    notes = restored(file, service, "home", tmp_path).notes
    assert [note.split(": ", 1)[1].split(" (")[0].split(";")[0] for note in notes] == [
        f"webhook.remove of webhook:{hook}", "plan.pause of plan:leak", "plan.archive of plan:wear",
        "plan.delete of plan:spare", "site.enrol of site:of-cod", "key.replace of key:webhooks.key",
    ]


def test_what_cannot_be_done_again_is_said(service: Path, tmp_path: Path) -> None:
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        backend.store.plans.set_archived("wear", True)
        file = backed_up(service, tmp_path / "b")
        backend.store.plans.set_archived("wear", False)
        unlearn(backend, "wear", "east")
    (note,) = restored(file, service, "home", tmp_path).notes
    assert "and is not yet again: plan wear is archived" in note and "restore it first" in note


def test_a_later_state_goes_on_from_the_backup(service: Path, tmp_path: Path) -> None:
    file = backed_up(service, tmp_path / "b")
    newer = backed_up(service, tmp_path / "c")
    elsewhere = restore_backup(file, tmp_path / "elsewhere", WORD, environment=NOWHERE).home
    backed_up(elsewhere, tmp_path / "d")
    there = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ConflictError, match="elsewhere is no later state"):  # both have an entry 3, each its own
        restore_backup(newer, tmp_path / "new", WORD, environment=NOWHERE, later=(elsewhere, unlearn_again))
    with pytest.raises(ConflictError, match=r"b is no later state .* go on from the backup's entry 3"):
        restore_backup(newer, tmp_path / "new", WORD, environment=NOWHERE, later=(file, unlearn_again))
    with pytest.raises(UnavailableError, match="nothing cannot be read: No such file"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE, later=(tmp_path / "nothing", unlearn_again))
    with sqlite3.connect(service / "ballast.db") as store:
        store.execute("DROP TRIGGER audit_events_no_update")
        store.execute("UPDATE audit_events SET target = 'site:nobody' WHERE number = 3")
    store.close()
    with pytest.raises(ConflictError, match="does not hold: entry 3 was changed"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE, later=(service, unlearn_again))
    with sqlite3.connect(service / "ballast.db") as store:
        store.execute("DROP TRIGGER audit_events_no_delete")
        store.execute("DELETE FROM audit_events WHERE number = 3")  # as of a plant that left: it would be back
    store.close()
    with pytest.raises(ConflictError, match="does not hold: entry 4 was changed"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE, later=(service, unlearn_again))
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_a_later_backup_with_an_entry_that_is_none_is_refused_in_words(service: Path, tmp_path: Path) -> None:
    file = backed_up(service, tmp_path / "b")
    with sqlite3.connect(service / "ballast.db") as store:
        store.execute("DROP TRIGGER audit_events_no_update")
        store.execute("UPDATE audit_events SET hash = 'none' WHERE number = 2")
    store.close()
    newer = backed_up(service, tmp_path / "c")
    with pytest.raises(ConflictError, match="has an entry of the audit trail that cannot be read"):
        restore_backup(file, tmp_path / "new", WORD, environment=NOWHERE, later=(newer, unlearn_again))


def test_the_later_home_is_its_own_and_not_what_the_environment_names(
    service: Path, tmp_path: Path, empty_postgresql: Callable[[], str]
) -> None:
    file = backed_up(service, tmp_path / "b")
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        unlearn(backend, "wear", "east")
    (tmp_path / "url").write_text(empty_postgresql())
    environment: dict[str, Any] = {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")}
    (tmp_path / "url").chmod(0o600)
    done = restore_backup(file, tmp_path / "new", WORD, environment=environment, later=(service, unlearn_again))
    assert len(done.unlearned) == 1 and done.notes == []


def test_the_command_says_what_comes_back(service: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word = tmp_path / "word"
    word.write_text(WORD)
    word.chmod(0o600)
    file = backed_up(service, tmp_path / "b")
    with open_backend(Settings.load(service, NOWHERE)) as backend:
        unlearn(backend, "wear", "east")
    command = ["restore", str(file), "--passphrase-file", str(word), "--home"]
    assert main([*command, str(tmp_path / "new")]) == 0
    assert f"note: {NOT_LOOKED}" in capsys.readouterr().out
    assert main([*command, str(tmp_path / "other"), "--later", str(service), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert "site east was unlearned from model wear" in said["unlearned"][0] and said["notes"] == []
