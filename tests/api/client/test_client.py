"""The client against a real server, with a front between them that loses answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from api.client import (
    ChangedMeanwhileError,
    ChangeStoredError,
    Client,
    InvalidRequestError,
    NotAllowedError,
    NotThereError,
    ServerError,
    SignedOutError,
    UnreachableError,
)
from services.bus.configuration import BusFiles
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file
from tests.api.conftest import RUN_ID, SITES, a_plan
from tests.loopback import serving
from tests.ports import free_port
from tests.waiting import PATIENCE


class Front:
    """Hands requests on to the server; loses as many answers as ``lost`` says, after the server has given them."""

    def __init__(self, server: str) -> None:
        self.lost = 0
        self.statuses: list[int] = []
        self.asked: list[dict[str, str]] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(server))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def _handler(front, server: str) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                front.asked.append(dict(self.headers.items()))
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                address = server + self.path
                answer = httpx.request(self.command, address, content=body, headers=headers, timeout=PATIENCE)
                if front.lost:
                    front.lost -= 1
                    self.close_connection = True
                    return
                self.send_response(front.statuses.pop(0) if front.statuses else answer.status_code)
                for name in ("Content-Type", "Link", "Idempotent-Replayed"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def front(server: str) -> Iterator[Front]:
    made = Front(server)
    with serving(made.http):
        yield made


@pytest.fixture
def a_client(world: Any, front: Front) -> Callable[..., Client]:
    def make(role: Role = Role.OPERATOR, **more: Any) -> Client:
        return Client(front.url, world.tokens[role], sleep=lambda _: None, **more)

    return make


def test_what_is_read_is_typed(world: Any, a_client: Callable[..., Client]) -> None:
    client = a_client()
    assert "pumps" in [model.name for model in client.models()]
    assert client.model("pumps").versions[0].version == client.version("pumps").version == "1"
    run = client.run(RUN_ID)
    assert (run.status, [each.run_id for each in client.runs(plan="pumps")]) == ("completed", [RUN_ID])
    rounds = client.rounds(RUN_ID)
    assert [each.round for each in rounds] == [1, 2, 3] and rounds[0].gap == float("inf")
    assert [plan.plan.name for plan in client.plans()] == ["pumps"] and client.plan("pumps").plan.sites == SITES
    assert [site.site_id for site in client.sites()] == sorted(SITES)
    features = world.backend.registry.get("pumps", "champion").asset_type.features
    sample = {feature.name: (feature.low + feature.high) / 2 for feature in features}
    answer = client.diagnose("pumps", sample, sample)
    assert len(answer.diagnoses) == 2 and answer.model_version == "1"


def test_lists_go_on_over_pages(world: Any, a_client: Callable[..., Client]) -> None:
    runs = world.backend.store.runs
    for number in range(101):
        runs.create_run(a_plan("pumps", sites=SITES), f"{number:032x}")
        runs.finish_run(f"{number:032x}", "cancelled", "a test")
    found = [run.run_id for run in a_client().runs()]
    assert len(found) == len(set(found)) == 102


def test_refusals_are_classes_with_the_servers_words(a_client: Callable[..., Client], front: Front) -> None:
    client, viewer = a_client(), a_client(Role.VIEWER)
    with pytest.raises(NotThereError, match="nothing") as gone:
        client.plan("nothing")
    assert (gone.value.status, gone.value.code) == (404, "not_found")
    with pytest.raises(NotAllowedError, match="needs the role operator"):
        viewer.trigger("pumps")
    with pytest.raises(InvalidRequestError) as wrong:
        client.diagnose("pumps", {"flow_maen": 1.0})
    assert wrong.value.status == 422
    with pytest.raises(InvalidRequestError) as wrong:
        client.promote("pumps", "")
    assert wrong.value.findings[0][0] == "body.reason"
    with pytest.raises(ChangedMeanwhileError) as other:
        client.estimate("pumps", {"flow_mean": 1.0})
    assert other.value.code == "wrong_task"
    with pytest.raises(SignedOutError):
        next(Client(front.url, "blst_nothing").models())
    for name in ("..", "", "."):
        with pytest.raises(InvalidRequestError):
            client.plan(name)
    for name in ("../../v1/models", "pumps?archived=true"):
        with pytest.raises(NotThereError):
            client.plan(name)


def test_a_change_that_is_stored_is_not_asked_for_again(
    world: Any, a_client: Callable[..., Client], front: Front, new_key: Callable[[], str]
) -> None:
    files = BusFiles(world.settings.bus_folder)
    files.folder.mkdir(parents=True)
    new_seed_file(files.coordinator_seed)
    (files.folder / "users.lock").mkdir()
    client, body = a_client(Role.ADMINISTRATOR), {"site_id": "plant-9", "public_key": new_key()}
    with pytest.raises(ChangeStoredError, match="the change is stored"):
        client._http.call("POST", "/v1/admin/sites", body=body, change=True)
    assert len(front.asked) == 1 and world.backend.store.sites.get("plant-9").status == "active"


def test_a_change_whose_answer_was_lost_is_made_once(world: Any, a_client: Callable[..., Client], front: Front) -> None:
    front.lost = 2
    run = a_client().trigger("pumps", "a look")
    assert run.status == "pending" and world.events().count("plan.trigger") == 1
    keys = {asked["Idempotency-Key"] for asked in front.asked}
    assert len(front.asked) == 3 and len(keys) == 1
    world.backend.store.runs.finish_run(run.run_id, "cancelled", "a test")
    assert a_client().trigger("pumps", "a look", key="mine").run_id != run.run_id
    again = a_client().trigger("pumps", "a look", key="mine")
    assert world.events().count("plan.trigger") == 2 and again.status == "pending"


def test_what_is_noted_of_a_plan_comes_with_it_and_with_its_run(world: Any, a_client: Callable[..., Client]) -> None:
    world.backend.store.plans.create(a_plan("summed", reveal="sums"))
    (notice,) = a_client().trigger("summed").notices
    assert a_client().plan("summed").notices == (notice,) and notice.startswith("on sums min_site_f1 holds only")
    assert a_client().trigger("pumps").notices == a_client().plan("pumps").notices == ()


def test_a_tuning_alone_is_asked_for_once_and_its_refusal_says_what_to_add(
    world: Any, a_client: Callable[..., Client]
) -> None:
    with pytest.raises(InvalidRequestError, match='write tuning = "auto"') as refused:
        a_client().tune("pumps")
    assert refused.value.code == "no_tuning"
    world.backend.store.plans.update(a_plan("pumps", sites=SITES).model_copy(update={"tuning": "auto"}))
    run, again = (a_client().tune("pumps", "a look", key="mine") for _ in range(2))
    assert run.run_id == again.run_id and run.plan.tunes_only and world.events().count("plan.tune") == 1
    assert a_client().run(run.run_id).plan.tuned is None


def test_it_asks_again_what_may_pass_and_nothing_else(a_client: Callable[..., Client], front: Front) -> None:
    front.statuses = [503, 502]
    assert [model.name for model in a_client().models()]
    front.asked.clear()
    front.lost = 9
    with pytest.raises(UnreachableError, match="does not answer"):
        list(a_client().models())
    assert len(front.asked) == 3
    front.lost, front.statuses = 0, [500]
    front.asked.clear()
    with pytest.raises(ServerError):
        list(a_client().models())
    assert len(front.asked) == 1


def test_a_token_goes_to_no_plain_and_no_other_address(front: Front) -> None:
    with pytest.raises(ValueError, match="https"):
        Client("http://ballast.example.com", "blst_")
    with pytest.raises(ValueError, match="must end before its query"):
        Client("https://ballast.example.com/?tenant=1", "blst_")
    with pytest.raises(UnreachableError, match="does not answer"):
        Client(f"http://127.0.0.1:{free_port()}", "blst_", sleep=lambda _: None).run("x")


def test_a_run_is_stopped_under_the_callers_key(world: Any, a_client: Callable[..., Client], front: Front) -> None:
    world.backend.store.runs.create_run(a_plan("pumps", sites=SITES), "2" * 32)
    for _ in range(2):
        assert a_client().cancel("2" * 32, "a look", key="mine").cancel_requested
    assert [asked["Idempotency-Key"] for asked in front.asked] == ["mine", "mine"]
    assert world.events().count("run.cancel") == 1
