"""The OEM's own host as another local user and as a page of another origin sees it: ``ballast up``, whole."""

from __future__ import annotations

import json
import os
import stat
import subprocess

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from services.identity.server_secrets import USER
from tests.journeys.host import Host

ANOTHER_PAGE = "http://elsewhere.example"
NOBODY = 65534


def as_nobody(script: str, *arguments: str) -> str:
    """Output of a script that another local user runs."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", script, *arguments], user=NOBODY, group=NOBODY, extra_groups=[],
        capture_output=True, text=True, check=False, cwd="/", env={"PATH": "/usr/bin:/bin:/usr/local/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_prefect_takes_no_order_without_its_secret(host: Host) -> None:
    for path in ("/flow_runs/", "/deployments/", "/flows/filter", "/automations/", "/block_documents/"):
        assert httpx.post(host.prefect + path, json={}).status_code in (401, 403), path
    for path in ("/admin/settings", "/flow_runs/next", "/csrf-token?client=page"):
        assert httpx.get(host.prefect + path).status_code == 401, path
        assert httpx.get(host.prefect + path, auth=(USER, "0" * 64)).status_code == 401, path


def test_prefect_takes_orders_with_its_secret_and_the_token_of_its_own_pages_alone(host: Host) -> None:
    create = {"name": "of-the-test"}
    with httpx.Client(base_url=host.prefect, auth=host.prefect_user) as client:
        refused = client.post("/flows/", json=create)
        assert (refused.status_code, refused.json()["detail"]) == (403, "Missing CSRF token.")
        wrong = {"Prefect-Csrf-Client": "page", "Prefect-Csrf-Token": "0" * 64}
        assert client.post("/flows/", json=create, headers=wrong).status_code == 403
        token = client.get("/csrf-token", params={"client": "page"}).json()["token"]
        right = wrong | {"Prefect-Csrf-Token": token}
        assert client.post("/flows/", json=create, headers=right).status_code == 201
    assert httpx.post(f"{host.prefect}/flows/", json=create, headers=right).status_code == 401


def test_no_page_of_another_origin_may_read_what_prefect_answers(host: Host) -> None:
    asked = httpx.options(
        f"{host.prefect}/flow_runs/", headers={"Origin": ANOTHER_PAGE, "Access-Control-Request-Method": "POST"}
    )
    assert asked.status_code == 400
    read = httpx.get(f"{host.prefect}/flows/count", headers={"Origin": ANOTHER_PAGE}, auth=host.prefect_user)
    assert "access-control-allow-origin" not in {*asked.headers, *read.headers}


@pytest.mark.parametrize("subprotocols", [None, [Subprotocol("prefect")]])
def test_prefect_hears_no_events_without_its_secret(host: Host, subprotocols: list[Subprotocol] | None) -> None:
    address = host.prefect.replace("http://", "ws://") + "/events/in"
    with pytest.raises((ConnectionClosed, InvalidStatus)), connect(address, subprotocols=subprotocols) as socket:
        socket.send(json.dumps({"type": "auth", "token": f"{USER}:{'0' * 64}"}))
        assert json.loads(socket.recv(timeout=30))["type"] != "auth_success"
        socket.recv(timeout=30)


def test_mlflow_answers_nothing_without_its_password(host: Host) -> None:
    asked = {"/": "GET", "/api/2.0/mlflow/registered-models/search": "GET", "/graphql": "POST",
             "/api/2.0/mlflow/registered-models/create": "POST", "/ajax-api/2.0/mlflow/runs/search": "POST",
             "/api/2.0/mlflow/registered-models/alias": "POST", "/signup": "GET",
             "/ajax-api/3.0/mlflow/assistant/config": "GET"}
    for path, method in asked.items():
        for auth in (None, (USER, "0" * 64)):
            answer = httpx.request(method, host.mlflow + path, json={} if method == "POST" else None, auth=auth)
            assert answer.status_code in (401, 403), path
    found = httpx.get(f"{host.mlflow}/api/2.0/mlflow/registered-models/search", auth=host.mlflow_user)
    assert found.status_code == 200


@pytest.mark.parametrize("headers", [
    {"Origin": ANOTHER_PAGE}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://localhost:1"}, {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Host": "elsewhere.example"},
    {"Host": "localhost"},
])
def test_mlflow_takes_no_order_of_another_page_though_the_browser_adds_the_password(
    host: Host, headers: dict[str, str]
) -> None:
    create = f"{host.mlflow}/api/2.0/mlflow/registered-models/create"
    refused = httpx.post(create, json={"name": "of-another-page"}, headers=headers, auth=host.mlflow_user)
    assert refused.status_code == 403
    asked = httpx.options(create, headers={"Access-Control-Request-Method": "POST", **headers})
    assert asked.status_code == 403


def test_mlflow_takes_orders_of_its_own_pages(host: Host) -> None:
    create = f"{host.mlflow}/api/2.0/mlflow/registered-models/create"
    own = {"Origin": host.mlflow, "Sec-Fetch-Site": "same-origin"}
    taken = httpx.post(create, json={"name": "of-its-own-page"}, headers=own, auth=host.mlflow_user)
    assert taken.status_code == 200


def test_every_file_of_the_home_is_private(host: Host) -> None:
    found = [host.settings.home, *host.settings.home.rglob("*")]
    kinds = {path.suffix for path in found}
    assert {".db", ".log", ".nk", ".key", ".pem", ".conf"} <= kinds
    # Prefect copies its own pages with the modes of its package, into a folder that nobody else may enter.
    pages = host.settings.home / "prefect" / "pages"
    assert pages in found
    shared = [str(path) for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077 and pages not in path.parents]
    assert shared == []


def test_another_local_user_reads_no_file_of_the_home(host: Host) -> None:
    script = (
        "import json, os, sys\n"
        "def reads(path):\n"
        "    try:\n"
        "        return bool(os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(1) or True)\n"
        "    except OSError:\n"
        "        return False\n"
        "paths = json.loads(sys.argv[1])\n"
        "print(json.dumps([reads(paths[0]), [path for path in paths[1:] if reads(path)]]))\n"
    )
    paths = [str(path) for path in (host.settings.home, *host.settings.home.rglob("*"))]
    beside = host.settings.home.parent / "for-everybody"
    beside.write_text("x")
    beside.chmod(0o644)
    assert json.loads(as_nobody(script, json.dumps([str(beside), *paths]))) == [True, []]


def test_another_local_user_gives_no_order(host: Host) -> None:
    script = (
        "import sys, urllib.error, urllib.request\n"
        "def status(address):\n"
        "    asked = urllib.request.Request(address, b'{}', {'Content-Type': 'application/json'})\n"
        "    try:\n"
        "        return urllib.request.urlopen(asked).status\n"
        "    except urllib.error.HTTPError as error:\n"
        "        return error.code\n"
        "print(*(status(address) for address in sys.argv[1:]))\n"
    )
    addresses = (
        f"{host.prefect}/flow_runs/", f"{host.mlflow}/api/2.0/mlflow/registered-models/create",
        f"http://127.0.0.1:{host.settings.api.port}/v1/admin/plans",
    )
    codes = as_nobody(script, *addresses).split()
    assert set(codes) <= {"401", "403"} and len(codes) == 3
