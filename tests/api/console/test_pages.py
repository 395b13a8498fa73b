"""What every page shows, how many statements that takes, and that words from outside stay words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from api.backend.actor import Actor
from api.console.rendering import POLICY, STATIC, environment
from api.models import service as models
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.identity import Role
from services.contracts.model_version import PlantFreshness
from services.contracts.overrides import FOR_ONE_RUN
from services.contracts.run import RoundRecord, SiteAnswer
from services.plant_simulator.assets import builtin_asset_type
from tests import versions
from tests.api.conftest import SITES, a_version, register

RUN = "ab" * 16
VERSION = "/console/models/pumps/versions/1"
PAGES = (
    "/console", "/console/runs", f"/console/runs/{RUN}", f"/console/runs/compare?left={RUN}&right={RUN}",
    "/console/models", VERSION, f"{VERSION}/fairness", "/console/models/pumps/diagnose", "/console/plans",
    "/console/plans/pumps", "/console/audit", "/console/audit?verify=true", "/console/admin", "/console/system",
    "/console/privacy", "/console/components",
)
MOST_STATEMENTS = 8
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{7*7}}"


@contextmanager
def counted(world: Any) -> Iterator[list[str]]:
    """Statements on the store meanwhile, without the words that begin and end transactions."""
    found: list[str] = []

    def note(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA")):
            found.append(statement)

    engine = world.app.state.backend.store.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_takes_few_statements_and_binds_the_browser(
    shared_world: Any, people: dict[Role, Any], path: str
) -> None:
    person = people[Role.ADMINISTRATOR]
    person.get(path)  # the use of the session is noted once a minute
    with counted(shared_world) as statements:
        answer = person.get(path)
    assert answer.status_code == 200, answer.text
    assert 0 < len(statements) <= MOST_STATEMENTS, statements
    headers = answer.headers
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in POLICY
    assert "unsafe" not in POLICY and "http" not in POLICY
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    for found in re.findall(r'<code>(/v1/[^<]+)</code>', answer.text):
        assert person.get(found).status_code == 200, f"the API path beside {path}"


def test_no_page_has_a_script_or_a_style_in_it_or_loads_from_elsewhere() -> None:
    texts = {name: environment().loader.get_source(environment(), name)[0] for name in environment().list_templates()}
    assert len(texts) > 15
    for name, text in texts.items():
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:|hx-vals=.js:", text), name
        for tag in re.findall(r"<script[^>]*>[^<]*</script>", text):
            assert re.fullmatch(r"<script src=\"\{\{ asset\('[a-z./-]+'\) \}\}\"( defer)?></script>", tag), (name, tag)
        for address in re.findall(r'\s(?:src|href|action|hx-get|hx-post|formaction)="([^"]*)"', text):
            assert address.startswith(("/", "{{", "#")) and not address.startswith("//"), (name, address)
        assert "| safe" not in text or name == "docs.html", name


def test_what_is_kept_beside_is_what_was_published() -> None:
    import hashlib

    listed = dict(reversed(line.split("  ")) for line in (STATIC / "vendor" / "SHA256SUMS").read_text().splitlines())
    files = [path for path in (STATIC / "vendor").iterdir() if path.suffix in (".js", ".css")]
    assert {path.name for path in files} == set(listed)
    for path in files:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[path.name], path.name


def test_files_of_the_console_are_handed_out_and_no_others(shared_world: Any) -> None:
    answer = shared_world.call(None, "GET", "/console/static/console.css")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/css")
    for name in ("../rendering.py", "%2e%2e/rendering.py", "vendor/../../rendering.py", "no.css", "vendor/SHA256SUMS"):
        assert shared_world.call(None, "GET", f"/console/static/{name}").status_code == 404, name


def test_viewers_see_no_plants_name(shared_world: Any, people: dict[Role, Any]) -> None:
    named = ("/console", f"/console/runs/{RUN}", "/console/runs", VERSION, f"{VERSION}/fairness", "/console/privacy")
    for path in named:
        text = people[Role.VIEWER].get(path).text
        assert not re.search(r"plant-(east|west|north)", text), path
    assert "plant-west" in people[Role.OPERATOR].get(f"/console/runs/{RUN}").text
    assert "plant-west" not in people[Role.OPERATOR].get(f"{VERSION}/fairness").text
    assert "plant-west" in people[Role.ADMINISTRATOR].get(f"{VERSION}/fairness").text


def hostile_world(world: Any) -> str:
    """Put words that would be a page's own into all that others write; the run that has them."""
    store, actor = world.backend.store, Actor("test", Role.ADMINISTRATOR)
    store.sites.set_notice("plant-east", HOSTILE)
    store.sites.seen("plant-east", HOSTILE[:40])
    with store.database.write() as session:
        from services.round_store.tables import SiteRow

        session.get(SiteRow, "plant-east").description = HOSTILE
    run = store.runs.create_run(store.plans.get("pumps").plan)
    away = SiteAnswer(site_id="plant-west", status="absent", code=HOSTILE, reason=HOSTILE)
    store.runs.begin_run(run.run_id, store.runs.get_run(RUN).sites, (away,))
    refused = SiteAnswer(site_id="plant-west", status="refused_by_site", code=HOSTILE, reason=HOSTILE)
    store.runs.commit_round(
        RoundRecord.model_validate(
            versions.a_round(run.run_id, 1, refused, started_at=datetime.now(UTC), lower=-math.inf)
        ), {},
    )
    store.runs.finish_run(run.run_id, "failed", HOSTILE)
    tokens.create(world.backend, actor, TokenRequest(name=HOSTILE[:80], role=Role.VIEWER))
    with store.atomic() as inside:
        inside.audit.append(
            actor=HOSTILE, role=None, action=HOSTILE, target=HOSTILE, reason=HOSTILE, before={HOSTILE: HOSTILE},
            after={"x": HOSTILE},
        )
    return run.run_id


def test_words_from_outside_stay_words(world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]) -> None:
    run_id = hostile_world(world)
    person = signed_in(world)
    asked = [*PAGES, f"/console/runs/{run_id}"]
    asked += [f"/console/audit?actor={q}&action={q}&target={q}" for q in ["%3Cscript%3Ealert(1)%3C/script%3E\"'"]]
    asked += ["/console/runs?plan=%3Cscript%3Ealert(1)%3C/script%3E", "/console?model=%22%3E%3Cscript%3Ealert(1)"]
    shown = 0
    for path in asked:
        text = person.get(path).text
        assert "<script>alert" not in text and "<img src=x" not in text and "49" not in re.findall(r"&amp;(\d+)", text)
        shown += "&lt;script&gt;alert(1)" in text
    assert shown >= 6, "the words are there to be read"
    assert HOSTILE in reading(person.get(f"/console/runs/{run_id}"))
    for path, fields in (
        ("/console/plans/pumps/check", {"text": HOSTILE}), ("/console/plans", {"text": HOSTILE}),
        ("/console/models/pumps/diagnose", {"csv": HOSTILE}), ("/console/admin/sites", {"site_id": HOSTILE}),
    ):
        answer = person.post(path, **fields)
        assert answer.status_code == 422 and "<script>alert" not in answer.text and "<img" not in answer.text, path


def test_the_fleet_says_what_wants_attention(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    store = world.backend.store
    person = signed_in(world)
    assert "2 plants never seen: plant-east, plant-west" in reading(person.get("/console"))
    store.sites.connected(["plant-east"])
    store.sites.suspend("plant-west")
    store.plans.set_paused("pumps", True)
    run = store.runs.create_run(store.plans.get("pumps").plan)
    store.runs.finish_run(run.run_id, "failed", "plant-west is at sea")
    text = reading(person.get("/console"))
    for told in (
        "The last run of pumps failed plant-west is at sea", "1 plant suspended: plant-west", "Plan pumps is paused",
        "plant-east connected", "plant-west suspended", "Version 1 of pumps is not champion There is no champion yet.",
    ):
        assert told in text, told
    assert text.index("failed") < text.index("suspended: plant-west"), "the worst comes first"


def test_a_champions_figures_stand_beside_the_plants(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    first, second = world.new_model("rigs", 0.9, 0.81)
    person, store = signed_in(world), world.backend.store
    answer = person.post(f"/console/models/rigs/versions/{first}/promote", reason="it is better")
    assert answer.headers["Location"] == f"/console/models/rigs/versions/{first}"
    assert models.champion_of(world.backend, "rigs") == first
    text = reading(person.get("/console?model=rigs"))
    assert "rigs version 1 , the champion" in text
    assert re.search(r"plant-west never seen \S+ \S+ UTC – 50 % 0.9 0.3 ", text), text
    assert "Version 2 of rigs is not champion Version 1 is." in text
    assert person.post(f"/console/models/rigs/versions/{second}/promote", reason="no").status_code == 422
    person.post(f"/console/models/rigs/versions/{second}/promote", reason="newer")
    text = reading(person.get(f"/console/models/rigs/versions/{first}/fairness"))
    assert "beside the champion, version 2" in text
    assert person.post("/console/models/rigs/rollback", reason="worse").status_code == 303
    assert models.champion_of(world.backend, "rigs") == first
    actions = [each.action for each in store.audit.list_events(limit=3)]
    assert actions == ["model.rollback", "model.promote", "model.promote"]


def test_a_version_whose_gate_does_not_hold_is_promoted_only_in_full_knowledge(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    (number,) = world.new_model("pipes", 0.1)
    person, here = signed_in(world), f"/console/models/pipes/versions/{number}"
    text = reading(person.get(here))
    assert "F-1 at the worst plant, at least 0.1 is not at or above 0.8 0.8 0.1 does not hold" in text
    assert "although a gate does not hold" in text
    assert person.post(f"{here}/promote", reason="please").status_code == 409
    assert models.champion_of(world.backend, "pipes") is None
    assert person.post(f"{here}/promote", reason="please", ignore_gates="yes").status_code == 303
    assert models.champion_of(world.backend, "pipes") == number


def test_plans_are_checked_changed_paused_and_triggered(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    person, store = signed_in(world), world.backend.store
    page = person.get("/console/plans/pumps").text
    etag = re.search(r'name="etag" value="([^"]+)"', page)[1].replace("&#34;", '"')
    from services.contracts.toml_text import to_toml

    text = to_toml(store.plans.get("pumps").plan).replace("max_rounds = 100", 'max_rounds = 7\ncron = "30 4 * * 2"')
    checked = person.post("/console/plans/pumps/check", text=text)
    assert "max_rounds 100 7" in reading(checked) and store.plans.get("pumps").plan.max_rounds == 100
    assert person.post("/console/plans/pumps/save", text=text, etag='"old"').status_code == 412
    assert person.post("/console/plans/pumps/save", text=text, etag=etag, reason="fewer").status_code == 303
    assert store.plans.get("pumps").plan.max_rounds == 7
    other = text.replace('name = "pumps"', 'name = "pumps-2"')
    assert "name stays pumps" in reading(person.post("/console/plans/pumps/check", text=other))
    person.post("/console/plans/pumps/pause", reason="holiday")
    assert "None by a schedule: the plan is paused." in reading(person.get("/console/plans/pumps"))
    person.post("/console/plans/pumps/resume")
    assert "04:30 UTC" in reading(person.get("/console/plans/pumps"))
    answer = person.post("/console/plans/pumps/trigger", reason="now")
    assert answer.headers["Location"] == f"/console/runs/{store.runs.unfinished_runs()[0].run_id}"
    assert "one run of a plan at a time" in reading(person.get("/console/plans/pumps"))
    assert person.post(f"{answer.headers['Location']}/cancel", reason="oh").status_code == 303
    assert store.runs.unfinished_runs()[0].cancel_requested
    assert world.events()[:5] == ["run.cancel", "plan.trigger", "plan.resume", "plan.pause", "plan.update"]
    assert person.post("/console/plans", text=other.replace("pumps-2", "other")).status_code == 303
    assert store.plans.get("other").plan.max_rounds == 7


def test_a_run_is_triggered_with_terms_of_its_own_and_a_mistake_is_said_beside_the_form(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    person, here, runs = signed_in(world), "/console/plans/pumps", world.backend.store.runs
    page = person.get(here).text
    names = set(re.findall(r'name="set-([a-z_]+)"', page))
    assert names == set(FOR_ONE_RUN) and 'placeholder="100"' in page
    for fields, said in (
        ({"set-max_rounds": "none"}, "max_rounds"), ({"set-max_rounds": "0"}, "max_rounds"),
        ({"set-gap": "0,01"}, "gap"),
        ({"set-min_sites": "1"}, "min_sites cannot be set for one run"),
        ({"set-auto_promote": "true"}, "auto_promote can only be false"),
    ):
        answer = person.post(f"{here}/trigger", **fields, **{"set-round_deadline_seconds": "7.5"})
        assert answer.status_code == 422 and "No run was asked for" in reading(answer)
        assert said in re.search(r'class="notice bad".*?</div>', answer.text, re.DOTALL)[0]
        assert 'value="7.5"' in answer.text and "<details open>" in answer.text
    assert runs.unfinished_runs() == [] and person.post(f"{here}/trigger", token="0" * 64).status_code == 403
    fields = {"set-max_rounds": " 50 ", "set-gap": "", "set-absence_patience_seconds": "1e3"}
    assert person.post(f"{here}/trigger", **fields, **{"set-auto_promote": "false"}).status_code == 303
    (run,) = runs.unfinished_runs()
    assert run.plan.overrides == {"max_rounds": 50, "absence_patience_seconds": 1000.0, "auto_promote": False}
    assert run.plan.gap == world.backend.store.plans.get("pumps").plan.gap and run.plan.max_rounds == 50


def test_a_measurement_is_diagnosed_from_the_form_and_from_csv(
    shared_world: Any, people: dict[Role, Any], reading: Callable[..., str]
) -> None:
    person, features = people[Role.VIEWER], builtin_asset_type("triplex-pump").features
    form = {f"reading-{each.name}": str((3 * each.low + each.high) / 4) for each in features}
    text = reading(person.post("/console/models/pumps/diagnose", **form))
    asked = {each.name: (3 * each.low + each.high) / 4 for each in features}
    told = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", {"sample": asked}).json()["diagnoses"][0]
    assert f"Answer {told['fault_class']}" in text
    width = features[0].high - features[0].low
    assert f"± {told['robustness_radius'] * width:.3g}" in text
    assert "Which sensors speak for it" in text
    table = ",".join(each.name for each in features) + "\n" + "\n".join(
        ",".join(str(value) for value in asked.values()) for _ in range(3)
    )
    assert "3 answers" in reading(person.post("/console/models/pumps/diagnose", csv=table))
    for wrong, why in (
        (table + "\n1,2", "line 5: 2 values for"), ("a,b\n1,2", "sample 0"), ("a", "a line with the names"),
        (table.replace(str(next(iter(asked.values()))), "nan", 1), "a finite number is needed"),
    ):
        answer = person.post("/console/models/pumps/diagnose", csv=wrong)
        assert answer.status_code == 422 and why in reading(answer), why
    answer = person.post("/console/models/pumps/diagnose", **(form | {f"reading-{features[0].name}": "much"}))
    assert f"{features[0].name}: a number is needed" in reading(answer)


def test_an_administrator_enrols_plants_and_makes_tokens(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str], reading: Callable[..., str]
) -> None:
    person, store, key = signed_in(world), world.backend.store, new_key()
    told = {"site_id": "plant-9", "public_key": key, "asset_types": "triplex-pump", "description": "by the sea"}
    assert person.post("/console/admin/sites", **told).status_code == 303
    assert store.sites.get("plant-9").description == "by the sea"
    assert "already" in person.post("/console/admin/sites", **told).text
    seed = person.post("/console/admin/sites", site_id="plant-8", public_key="SUAXXX")
    assert seed.status_code == 422 and "must not leave the plant" in reading(seed) and "SUAXXX" not in seed.text
    person.post("/console/admin/sites/plant-9/suspend", reason="storm")
    assert store.sites.get("plant-9").status == "suspended"
    person.post("/console/admin/sites/plant-9/activate")
    assert person.post("/console/admin/sites/plant-9/remove").status_code == 422, "a reason is needed"
    person.post("/console/admin/sites/plant-9/remove", reason="sold")
    assert store.sites.get("plant-9").status == "removed"
    made = person.post("/console/admin/tokens", name="line 4", role="viewer", days="2")
    token = re.search(r"blst_[0-9a-f]{12}_[0-9a-f]{64}", made.text)[0]
    assert world.call(None, "GET", "/v1/models", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert token not in person.get("/console/admin").text, "it is shown once"
    assert person.post("/console/admin/tokens", name="x", role="god").status_code == 422


def test_a_plant_leaves_by_the_page_of_a_version_and_a_version_is_taken_along(
    world: Any, signed_in: Callable[..., Any]
) -> None:
    person, store = signed_in(world), world.backend.store
    for run in store.runs.unfinished_runs("pumps"):
        store.runs.finish_run(run.run_id, "failed", "a test")
    shown = person.get(VERSION).text
    leaving = re.search(r'<select id="leaving".*?</select>', shown, re.DOTALL)[0]
    (first, *_) = re.findall(r"<option>([^<]+)</option>", leaving)
    assert store.sites.get(first).status == "active", "the page has the plants' own names for an administrator"
    export = re.search(r'href="(/v1/models/pumps/versions/1/export\?format=c99)"', shown)[1]
    taken = person.get(export)
    assert taken.status_code == 200 and b"self_test" in taken.content
    assert person.post("/console/models/pumps/unlearn", site=first).status_code == 422, "a reason is needed"
    assert person.post("/console/models/pumps/unlearn", site="X!", reason="sold").status_code == 422
    assert store.sites.get(first).status == "active"
    asked = person.post("/console/models/pumps/unlearn", site=first, reason="the plant was sold", now="yes")
    run = store.runs.get_run(asked.headers["Location"].rpartition("/")[2])
    assert asked.status_code == 303 and (run.leaving.site_id, run.leaving.at_once) == (first, True)
    assert store.sites.get(first).status == "removed"
    (entry,) = store.audit.list_events(action="model.unlearn")
    assert entry.reason == "the plant was sold"


def test_an_administrator_makes_a_code_that_is_shown_once_and_may_be_revoked(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str], reading: Callable[..., str]
) -> None:
    person, store = signed_in(world), world.backend.store
    made = person.post("/console/admin/codes", site_id="plant-8", asset_type="triplex-pump", hours="2")
    code = re.search(r"blse_plant-8_[0-9a-zA-Z_\-]+", made.text)[0]
    assert made.status_code == 200 and "ballast-site enrol --url" in reading(made)
    again = person.get("/console/admin")
    assert code not in again.text and "Revoke the code for plant-8" in reading(again)
    (record,) = store.enrolment_codes.list_codes("plant-8")
    assert (record.expires_at - record.created_at).total_seconds() == pytest.approx(7200)
    revoked = person.post(f"/console/admin/sites/plant-8/codes/{record.code_id}/revoke", reason="went astray")
    assert revoked.status_code == 303 and "No code waits to be used" in reading(person.get("/console/admin"))
    assert store.enrolment_codes.find(record.code_id).record.revoked_at is not None
    for told, status, why in (
        ({"site_id": "Plant 8"}, 422, "site_id"), ({"site_id": "plant-8", "hours": "0"}, 422, "expires_hours"),
        ({"site_id": "plant-8", "hours": "x"}, 422, "hours"),
        ({"site_id": "plant-8", "asset_type": "none"}, 422, "name the asset type of the site's machines"),
        ({"site_id": "plant-8", "asset_type": "triplex-pump", "replace_key": "on"}, 409, "no key to replace"),
    ):
        answer = person.post("/console/admin/codes", **told)
        assert answer.status_code == status and why in reading(answer), told
    assert len(store.enrolment_codes.list_codes("plant-8")) == 1, "nothing was made"


def test_errors_are_pages_in_plain_words(people: dict[Role, Any], reading: Callable[..., str]) -> None:
    person = people[Role.ADMINISTRATOR]
    for path in (f"/console/runs/{'0' * 32}", "/console/models/none", "/console/plans/none", "/console/nothing"):
        answer = person.get(path)
        assert answer.status_code == 404 and "Not there" in reading(answer), path
        assert answer.headers["content-type"].startswith("text/html")
    assert person.get("/console/runs?offset=-1").status_code == 422


def test_a_run_is_followed_live_until_its_end(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world, Role.VIEWER)
    answer = person.get(f"/console/runs/{RUN}/events?after=1")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert '"round": [2, 3]' in answer.text and '"status": "completed"' in answer.text
    assert answer.text.rstrip().endswith('event: end\ndata: {"reason": "completed"}')
    resumed = person.get(f"/console/runs/{RUN}/events", headers={"Last-Event-ID": "3"})
    assert '"round": []' in resumed.text


def test_the_library_of_the_docs_is_ours_alone() -> None:
    assert (STATIC / "vendor" / "swagger-ui-bundle.js").is_file()
    for name in ("htmx", "uplot", "swagger-ui"):
        assert (STATIC / "vendor" / f"{name}.LICENSE.txt").read_text(encoding="utf-8").strip()
    assert not [path for path in Path(STATIC).rglob("*.js") if "eval(" in path.read_text(encoding="utf-8")
                and path.name in ("console.js", "run.js", "theme.js", "docs.js")]


def test_a_version_of_rounds_that_waited_for_nobody_says_how_fresh_each_plant_is(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    freshness = (
        PlantFreshness(site_id=SITES[0], question=4, came=4, at_model=True),
        PlantFreshness(site_id=SITES[1], question=2, came=7, at_model=False, at_work=True),
    )
    version = a_version("late", "cd" * 16).model_copy(update={"freshness": freshness, "fresh_weight": 0.5})
    here = f"/console/models/late/versions/{register(world.backend.registry, version)}"
    text = reading(signed_in(world).get(here))
    assert "At the model itself plants with 50 % of the weight answered" in text
    assert f"{SITES[0]} 4 4 its risk at the model" in text
    assert f"{SITES[1]} 2 7 its cuts still at work" in text
    assert SITES[1] not in reading(signed_in(world, Role.VIEWER).get(here))
