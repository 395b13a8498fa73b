"""Two API processes behind a balancer answer as one: whatever was begun at one goes on at the other."""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from api.backend.replaced_keys import replace_key
from services.contracts.access.enrolment import proof, read_code
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.identity.service_keys import MEANINGS, PSEUDONYMS
from services.identity.webhook_signature import SIGNATURE, TIMESTAMP, check_signature
from services.plant_simulator.assets import builtin_asset_type
from tests.api.conftest import FOUNDER, RUN_ID, SITES, a_plan, put_model
from tests.api.console.conftest import Person
from tests.api.webhooks.conftest import receiver
from tests.waiting import PATIENCE, wait_until

__all__ = ["receiver"]
ADMIN, OPERATOR, VIEWER = Role.ADMINISTRATOR, Role.OPERATOR, Role.VIEWER


class Through:
    """Stands for a world to whom a `Person` speaks: one of the pair, or its balancer."""

    def __init__(self, pair: Any, at: int | None) -> None:
        self.pair, self.at = pair, at

    def call(self, role: Role | None, method: str, path: str, json: Any = None, **more: Any) -> httpx.Response:
        answer: httpx.Response = self.pair.ask(self.at, role, method, path, json, **more)
        return answer


def test_a_process_without_a_key_of_the_others_does_not_start(pair: Any, tmp_path: Path) -> None:
    """One line says which file is to be copied from where; those that have it go on."""
    third = pair.homes[1].model_copy(update={"home": tmp_path / "third"})
    third.home.mkdir(mode=0o700)
    for each in ("ballast.toml", *MEANINGS):
        shutil.copy(pair.homes[0].home / each, third.home)
    (third.home / PSEUDONYMS).unlink()
    pair.homes.append(third)
    process = pair.start(2)
    assert process.wait(PATIENCE) == 1
    pair.homes.pop()
    said = pair.log(2)
    assert said.startswith(f"ballast: {third.home / PSEUDONYMS} is missing; copy the file ") and said.count("\n") == 1
    assert f":{pair.homes[0].home / PSEUDONYMS} here" in said
    assert not (third.home / PSEUDONYMS).exists()


def test_a_plant_has_one_pseudonym(pair: Any) -> None:
    shown = [pair.ask(None, VIEWER, "GET", f"/v1/runs/{RUN_ID}").json() for _ in range(4)]
    assert len({json.dumps(each) for each in shown}) == 1
    text = json.dumps(shown[0])
    assert not any(site in text for site in SITES) and "site-" in text


def test_tokens_hold_and_end_at_both(pair: Any) -> None:
    made = pair.ask(0, ADMIN, "POST", "/v1/admin/tokens", {"name": "gateway", "role": "viewer"}).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert [pair.ask(at, None, "GET", "/v1/models", headers=bearer).status_code for at in (1, 0, 1)] == [200] * 3
    gone = pair.ask(0, ADMIN, "POST", f"/v1/admin/tokens/{made['token_id']}/revoke")
    assert gone.status_code == 200, gone.text
    assert [pair.ask(at, None, "GET", "/v1/models", headers=bearer).status_code for at in (1, 0)] == [401] * 2


def test_a_change_that_is_asked_for_at_both_is_made_once(pair: Any) -> None:
    key = {"Idempotency-Key": "at both"}
    body = a_plan("made-once").model_dump(mode="json")
    first, second = (pair.ask(at, ADMIN, "POST", "/v1/admin/plans", body, headers=key) for at in (0, 1))
    assert first.status_code == second.status_code == 201 and first.json() == second.json()
    assert "Idempotent-Replayed" in second.headers
    key = {"Idempotency-Key": "at the same moment"}
    wanted = {"name": "at once", "role": "viewer"}
    with ThreadPoolExecutor(8) as pool:
        def ask(n: int) -> Any:
            return pair.ask(n % 2, ADMIN, "POST", "/v1/admin/tokens", wanted, headers=key)
        found = list(pool.map(ask, range(8)))
    assert {each.status_code for each in found} <= {201, 409}
    assert len({each.text for each in found if each.status_code == 201}) == 1
    assert sum(token.name == "at once" for token in pair.backend.store.tokens.list_tokens()) == 1


def test_a_tag_of_one_holds_at_the_other(pair: Any) -> None:
    path, plan = "/v1/admin/plans/tagged", a_plan("tagged").model_dump(mode="json")
    assert pair.ask(0, ADMIN, "POST", "/v1/admin/plans", plan).status_code == 201
    tag = pair.ask(0, ADMIN, "GET", path).headers["ETag"]
    changed = {**plan, "max_rounds": 9}
    assert pair.ask(1, ADMIN, "PUT", path, changed, headers={"If-Match": tag}).status_code == 200
    assert pair.ask(0, ADMIN, "PUT", path, plan, headers={"If-Match": tag}).status_code == 412


def test_a_stream_goes_on_at_the_other(pair: Any) -> None:
    """Whose connection broke off asks with the last number that it saw; nothing is told twice or left out."""
    numbers: list[int] = []
    last = pair.backend.store.events.span()[1]
    names = [f"streamed-{number}" for number in range(6)]
    for turn, name in enumerate(names):
        run = pair.backend.store.runs.create_run(a_plan(name))
        pair.backend.store.runs.begin_run(run.run_id, ())
        pair.backend.store.runs.finish_run(run.run_id, "failed", "no site")
        headers = {"Authorization": f"Bearer {pair.tokens[OPERATOR]}", "Last-Event-ID": str(last)}
        with httpx.Client(timeout=PATIENCE, headers=headers) as client:
            with client.stream("GET", f"{pair.url(turn % 2)}/v1/events") as answer:
                lines = (line for line in answer.iter_lines() if line.startswith("data: "))
                numbers += [json.loads(next(lines).removeprefix("data: "))["number"]]
        last = numbers[-1]
    after = pair.backend.store.events.span()[1]
    assert numbers == list(range(numbers[0], numbers[0] + 6)) and numbers[-1] <= after


def test_somebody_who_is_signed_in_goes_from_one_to_the_other(pair: Any) -> None:
    person = Person(Through(pair, 0))
    assert person.sign_in(pair.tokens[ADMIN]).status_code == 303
    token = person.form_token()
    person.world = Through(pair, None)
    assert [person.get("/console").status_code for _ in range(4)] == [200] * 4
    person.world = Through(pair, 1)
    assert person.post("/console/sign-out", token=token).status_code == 303
    person.world = Through(pair, 0)
    assert person.get("/console").status_code == 303


def test_each_event_is_sent_to_a_webhook_once_and_signed(pair: Any, receiver: Any) -> None:
    made = pair.ask(0, ADMIN, "POST", "/v1/admin/webhooks", {"url": receiver.url, "kinds": ["run.failed"]}).json()
    for number in range(6):
        run = pair.backend.store.runs.create_run(a_plan(f"hooked-{number}"))
        pair.backend.store.runs.begin_run(run.run_id, ())
        pair.backend.store.runs.finish_run(run.run_id, "failed", "no site")
        time.sleep(0.3)  # both look every two seconds
    wait_until(lambda: len(receiver.heard) >= 6, "six messages")
    path = f"/v1/admin/webhooks/{made['webhook']['webhook_id']}"
    assert [pair.ask(at, ADMIN, "POST", f"{path}/test").status_code for at in (0, 1)] == [200] * 2
    for headers, body in receiver.heard:
        check_signature(made["secret"], headers[TIMESTAMP], body, headers[SIGNATURE], time.time())
    numbers = [said["number"] for _, body in receiver.heard if "number" in (said := json.loads(body))]
    assert numbers == sorted(set(numbers)) and len(numbers) == 6
    assert pair.ask(1, ADMIN, "DELETE", path).status_code == 200


def test_what_is_promoted_at_one_is_served_by_the_other(pair: Any) -> None:
    put_model(pair.backend, "twice", 0.9, 0.95)
    asset_type = builtin_asset_type("triplex-pump")
    sample = {each.name: (each.low + each.high) / 2 for each in asset_type.features}

    def served(at: int) -> str:
        answer = pair.ask(at, VIEWER, "POST", "/v1/models/twice/diagnose", {"samples": [sample]})
        return str(answer.json().get("model_version", answer.status_code))

    def serves(at: int, number: str) -> bool:
        return served(at) == number

    for number in ("1", "2"):
        answer = pair.ask(0, OPERATOR, "POST", "/v1/admin/models/twice/promote", {"version": number, "reason": "tried"})
        assert answer.status_code == 200, answer.text
        for at in (0, 1):
            wait_until(partial(serves, at, number), f"version {number} at {at}")


def shown(code: Any, seed: Path) -> dict[str, str]:
    """What a plant with a new key shows a code with."""
    new_seed_file(seed)
    key = public_key(seed)
    return {"site_id": code.site_id, "code_id": code.code_id, "secret": code.secret, "public_key": key,
            "signature": signer(seed)(proof(code.code_id, code.site_id, key)).hex()}


def test_a_code_of_one_enrols_at_the_other_once(pair: Any, tmp_path: Path) -> None:
    made = pair.ask(0, ADMIN, "POST", "/v1/admin/sites/plant-9/enrolment-codes", {"asset_type": "triplex-pump"}).json()
    bodies = [shown(read_code(made["code"]), tmp_path / f"{number}.nk") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: pair.ask(n % 2, None, "POST", "/enrol", bodies[n]), range(4)))
    assert sorted(each.status_code for each in found) == [200, 403, 403, 403], [each.text for each in found]
    enrolled = next(body for body, each in zip(bodies, found, strict=True) if each.status_code == 200)
    assert pair.backend.store.sites.get("plant-9").public_key == enrolled["public_key"]


def test_a_plant_that_shows_its_code_at_both_at_once_is_enrolled(pair: Any, tmp_path: Path) -> None:
    """As where it asks again because the first answer takes long."""
    for number in range(4):
        site = f"plant-{20 + number}"
        made = pair.ask(
            0, ADMIN, "POST", f"/v1/admin/sites/{site}/enrolment-codes", {"asset_type": "triplex-pump"}
        ).json()
        body = shown(read_code(made["code"]), tmp_path / f"{site}.nk")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda n, body=body: pair.ask(n % 2, None, "POST", "/enrol", body), range(8)))
        assert [each.status_code for each in found] == [200] * 8, [each.text for each in found]
        assert pair.backend.store.sites.get(site).public_key == body["public_key"]
        refused = pair.backend.store.audit.list_events(action="site.enrol_refused", target=f"site:{site}")
        assert not refused, "nobody else had the code"


def test_a_process_that_began_with_a_key_of_before_says_that_it_is_not_ready(pair: Any) -> None:
    """The balancer asks `/readyz`: neither who has no copy of the new key nor who goes on with the old one is asked."""
    assert [pair.is_ready(at) for at in (0, 1)] == [True, True]
    replace_key(pair.backend, FOUNDER, PSEUDONYMS, "lost")
    for at in (0, 1):
        answer = pair.ask(at, None, "GET", "/readyz")
        assert answer.status_code == 503 and "log says" in answer.json()["missing"]["keys"]
    assert "first/pseudonyms.key was replaced since this process began: start it again" in pair.log(0)
    assert "second/pseudonyms.key is not the key that this service uses; copy the file " in pair.log(1)
