"""The pages of plans and runs: checked, changed, paused, triggered, followed to the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from services.contracts.access.identity import Role
from services.contracts.plans.overrides import FOR_ONE_RUN
from services.reporting.tuning_section import tuning_chart
from tests.api.conftest import a_curve, a_plan

RUN = "ab" * 16


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
    wrong = person.post("/console/plans/pumps/check", text=other)
    assert wrong.status_code == 422 and "name stays pumps" in reading(wrong)
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


def test_what_is_noted_of_a_plan_stands_on_its_page(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    world.backend.store.plans.create(a_plan("summed", reveal="sums"))
    person, noted = signed_in(world), "on sums min_site_f1 holds only where every plant tells its own scores"
    assert noted in reading(person.get("/console/plans/summed"))
    assert noted not in reading(person.get("/console/plans/pumps"))


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
        assert said in re.search(r'class="notice bad"(?![^>]* hidden).*?</div>', answer.text, re.DOTALL)[0]
        assert 'value="7.5"' in answer.text and "<details open>" in answer.text
    assert runs.unfinished_runs() == [] and person.post(f"{here}/trigger", token="0" * 64).status_code == 403
    fields = {"set-max_rounds": " 50 ", "set-gap": "", "set-absence_patience_seconds": "1e3"}
    assert person.post(f"{here}/trigger", **fields, **{"set-auto_promote": "false"}).status_code == 303
    (run,) = runs.unfinished_runs()
    assert run.plan.overrides == {"max_rounds": 50, "absence_patience_seconds": 1000.0, "auto_promote": False}
    assert run.plan.gap == world.backend.store.plans.get("pumps").plan.gap and run.plan.max_rounds == 50


def test_a_tuning_alone_is_asked_for_and_its_curve_is_drawn(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    person, store, here = signed_in(world), world.backend.store, "/console/plans/pumps"
    assert 'With tuning = "auto" in the plan they can be chosen' in reading(person.get(here))
    refused = person.post(f"{here}/tune")
    assert refused.status_code == 422 and 'write tuning = "auto" into it' in reading(refused)
    store.plans.update(store.plans.get("pumps").plan.model_copy(update={"tuning": "auto"}))
    assert "Choose its terms, train nothing" in reading(person.get(here))
    answer = person.post(f"{here}/tune", reason="new sensors")
    (run,) = store.runs.unfinished_runs()
    assert answer.headers["Location"] == f"/console/runs/{run.run_id}" and run.plan.tunes_only
    live = person.get(answer.headers["Location"])
    assert 'data-live="yes"' in live.text and "shows the choice when it is made" in reading(live)
    assert "Proven gap" not in live.text and "Tuning of pumps" in live.text
    store.runs.begin_run(run.run_id, ())
    store.runs.set_tuned(run.run_id, run.plan.model_copy(update={"tuned": a_curve()}), ())
    store.runs.finish_run(run.run_id, "completed", "tuned, nothing was trained")
    shown = signed_in(world, Role.VIEWER).get(answer.headers["Location"])
    assert tuning_chart(a_curve()) in shown.text and "<svg" in tuning_chart(a_curve()), "the drawing of the report"
    said = reading(shown)
    assert "best of 2 with 0.9; rule best, 3 folds. It cost 15 rounds" in said
    assert "x3, 1, spline 6 0.9 not known 3 not known chosen" in said
    assert "lift, ball over the sites; scores: macro F-1" in said
    assert "completed tuning" in reading(person.get("/console/runs")) and world.events().count("plan.tune") == 1
    assert "How the terms were chosen" not in person.get(f"/console/runs/{RUN}").text


def test_a_run_is_followed_live_until_its_end(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world, Role.VIEWER)
    answer = person.get(f"/console/runs/{RUN}/events?after=1")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert '"round": [2, 3]' in answer.text and '"status": "completed"' in answer.text
    assert answer.text.rstrip().endswith('event: end\ndata: {"reason": "completed"}')
    resumed = person.get(f"/console/runs/{RUN}/events", headers={"Last-Event-ID": "3"})
    assert '"round": []' in resumed.text
