"""What every page shows, how many statements that takes, and that words from outside stay words."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from api.backend.actor import Actor
from api.console.rendering import POLICY, STATIC, asset, environment
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.access.identity import Role
from services.contracts.history.run import RoundRecord, SiteAnswer
from tests import versions

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
    """Statements on the store of requests meanwhile, without the words that begin and end transactions.

    What is sent to webhooks is looked for by threads of their own, every two seconds.
    """
    found: list[str] = []

    def note(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        if "AnyIO" in threading.current_thread().name and not statement.startswith(("BEGIN", "PRAGMA")):
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
    bounds = {"default-src 'none'", "script-src 'self'", "form-action 'self'", "base-uri 'none'"}
    assert bounds <= set(POLICY.split("; "))
    for name in ("Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"):
        assert headers[name] == "same-origin"
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
    listed = dict(reversed(line.split("  ")) for line in (STATIC / "vendor" / "SHA256SUMS").read_text().splitlines())
    files = [path for path in (STATIC / "vendor").iterdir() if path.suffix in (".js", ".css")]
    assert {path.name for path in files} == set(listed)
    for path in files:
        assert sha256(path.read_bytes()).hexdigest() == listed[path.name], path.name


def test_files_of_the_console_are_handed_out_and_no_others(shared_world: Any) -> None:
    answer = shared_world.call(None, "GET", "/console/static/console.css")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/css")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset("console.css") == f"/console/static/console.css?v={sha256(answer.content).hexdigest()[:12]}"
    for name in ("../rendering.py", "%2e%2e/rendering.py", "vendor/../../rendering.py", "no.css", "vendor/SHA256SUMS"):
        assert shared_world.call(None, "GET", f"/console/static/{name}").status_code == 404, name


def test_the_library_of_the_docs_is_ours_alone() -> None:
    assert (STATIC / "vendor" / "swagger-ui-bundle.js").is_file()
    for name in ("htmx", "uplot", "swagger-ui"):
        assert (STATIC / "vendor" / f"{name}.LICENSE.txt").read_text(encoding="utf-8").strip()
    assert not [path for path in Path(STATIC).rglob("*.js") if "eval(" in path.read_text(encoding="utf-8")
                and path.name in ("console.js", "run.js", "theme.js", "docs.js")]


def test_viewers_see_no_plants_name(shared_world: Any, people: dict[Role, Any]) -> None:
    named = ("/console", f"/console/runs/{RUN}", "/console/runs", VERSION, f"{VERSION}/fairness", "/console/privacy")
    for path in named:
        text = people[Role.VIEWER].get(path).text
        assert not re.search(r"plant-(east|west|north)", text), path
    for role in (Role.ENGINEER, Role.OPERATOR):
        for path in ("/console", f"/console/runs/{RUN}", VERSION, "/console/privacy"):
            assert "plant-west" in people[role].get(path).text, (role, path)
    assert "plant-west" not in people[Role.OPERATOR].get(f"{VERSION}/fairness").text
    assert "plant-west" in people[Role.ADMINISTRATOR].get(f"{VERSION}/fairness").text


def test_a_version_that_was_forgotten_is_named_and_no_link(
    world: Any, signed_in: Callable[..., Any], a_model: Callable[..., list[str]]
) -> None:
    person, (number,) = signed_in(world), a_model(world.backend, "left", 0.9)
    (run,) = world.backend.store.runs.list_runs(plan="left")
    link = f'href="/console/models/left/versions/{number}"'
    paths = ("/console/runs", f"/console/runs/{run.run_id}",
             f"/console/runs/compare?left={run.run_id}&right={RUN}")
    assert all(link in person.get(path).text for path in paths)
    world.backend.store.model_versions.mark_forgotten("left", (number,), "a plant left")
    for path in paths:
        text = person.get(path).text
        assert link not in text and f"{number} (forgotten)" in text, path
        if path != paths[1]:
            assert 'href="/console/models/pumps/versions/1"' in text, "the others have their links"


def hostile_world(world: Any) -> str:
    """Put words that would be a page's own into all that others write; the run that has them."""
    store, actor = world.backend.store, Actor("test", Role.ADMINISTRATOR)
    store.sites.set_notice("plant-east", HOSTILE)
    store.sites.seen("plant-east", HOSTILE[:40])
    with store.database.write() as session:
        from services.round_store.tables.sites import SiteRow

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
    page = reading(person.get(f"/console/runs/{run.run_id}"))
    for said in ("No plant was asked.", "No round ended.", "Nobody was asked in a round so far."):
        assert said in page
    assert "follows by itself" not in page


def test_errors_are_pages_in_plain_words(people: dict[Role, Any], reading: Callable[..., str]) -> None:
    person = people[Role.ADMINISTRATOR]
    for path in (f"/console/runs/{'0' * 32}", "/console/models/none", "/console/plans/none", "/console/nothing"):
        answer = person.get(path)
        assert answer.status_code == 404 and "Not there" in reading(answer), path
        assert answer.headers["content-type"].startswith("text/html")
    assert person.get("/console/runs?offset=-1").status_code == 422
