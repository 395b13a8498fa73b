"""Through enrolment, a training and a diagnosis no secret is on a command line, in an environment or in a log."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.identity.server_secrets import USER
from tests.journeys.host import PASSWORD, Host
from tests.journeys.works import ASSET, BIN, rows_of
from tests.waiting import wait_until

PASSPHRASE = "passphrase-of-the-backup-93ab"
SEEN_VALUE = "3.917263"
"""A reading of the plant's table that no log may show."""


@dataclass(frozen=True)
class Lived:
    """What has come and gone on a host: tokens, codes, a plant with its agent, a run, a diagnosis, a backup."""

    secrets: dict[str, str]
    plant: Path
    agent: subprocess.Popen[bytes]
    commands: list[list[str]]


def ballast(host: Host, *words: str) -> str:
    done = subprocess.run(
        [str(BIN / "ballast"), *words, "--home", str(host.settings.home)], capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def lived(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    base = tmp_path_factory.mktemp("lived")
    (base / "rig.toml").write_text(ASSET)
    token = ballast(host, "token", "create", "--role", "administrator", "--name", "ada").split()[-1]
    ballast(host, "asset-type", "add", str(base / "rig.toml"))
    code = next(word for word in ballast(host, "site", "enrol-code", "plant-9", "--asset-type", "rig").split()
                if word.startswith("blse_"))
    with (base / "rows.csv").open("w", newline="") as file:
        rows = rows_of(0, 60, seed=7)
        rows[3][0] = SEEN_VALUE
        csv.writer(file).writerows([["flow", "pressure", "speed", "label"], *rows])
    plant = base / "plant-9"
    enrol = [str(BIN / "ballast-site"), "enrol", "--url", host.settings.api.url, "--code", "-", "--data",
             str(base / "rows.csv"), "--dir", str(plant), "--seen-alone", "--allow-method", "level-bundle"]
    done = subprocess.run(enrol, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    settings = plant / "site.toml"
    settings.write_text(settings.read_text().replace("[data]", '[logging]\nformat = "json"\nlevel = "debug"\n\n[data]'))
    run = [str(BIN / "ballast-site"), "run", "--config", str(settings)]
    with (plant / "console.log").open("wb") as log:
        agent = subprocess.Popen(run, stdout=log, stderr=log)
    try:
        wait_until(lambda: "connected" in (plant / "console.log").read_text(), "connection of the agent")
        bearer = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=host.settings.api.url, headers=bearer, timeout=60) as api:
            hook = api.post("/v1/admin/webhooks", json={"url": "http://127.0.0.1:9/", "kinds": ["run.failed"]})
            assert hook.status_code == 201, hook.text
            train(api)
            asked = api.post("/v1/models/rig-plan/diagnose", json={"sample": {"flow": 1, "pressure": 1, "speed": 0}})
            assert asked.status_code == 200, asked.text
        (base / "passphrase").write_text(PASSPHRASE)
        ballast(host, "backup", str(base / "sealed"), "--passphrase-file", str(base / "passphrase"))
        secrets = {
            "token": token, "code": code, "webhook": hook.json()["secret"], "passphrase": PASSPHRASE,
            "database": PASSWORD, "plant's key": (plant / "site.nk").read_text().strip(), **secrets_of(host),
        }
        yield Lived(secrets, plant, agent, [enrol, run])
    finally:
        agent.terminate()
        agent.wait()


def train(api: httpx.Client) -> None:
    plan = {"name": "rig-plan", "asset_type": "rig", "method": "level-bundle", "reveal": "each site", "min_sites": 1,
            "max_rounds": 5, "gates": {"max_gap": None}}
    made = api.post("/v1/admin/plans", json=plan)
    assert made.status_code == 201, made.text
    run_id = api.post("/v1/admin/plans/rig-plan/trigger").json()["run_id"]

    def ended() -> bool:
        run: dict[str, Any] = api.get(f"/v1/runs/{run_id}").json()
        assert run["status"] in ("pending", "running", "completed"), run["reason"]
        return bool(run["status"] == "completed")

    wait_until(ended, "end of the run")


def secrets_of(host: Host) -> dict[str, str]:
    """All that opens anything on this host."""
    found = {
        path.name: path.read_text().strip().removeprefix(f"{USER}:") for path in host.settings.secrets_folder.iterdir()
    }
    assert len(found) >= 3
    key = "".join((host.settings.bus_folder / "server.key").read_text().splitlines()[1:-1])
    return {**found, "coordinator's key": host.settings.nats_seed.read_text().strip(), "server's key": key}


def family(root: int) -> dict[int, tuple[bytes, bytes]]:
    """Command line and environment of a process and all that it started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    ours, new = {root}, {root}
    while new := {pid for pid, parent in parents.items() if parent in new} - ours:
        ours |= new
    told = {pid: Path("/proc") / str(pid) for pid in ours}
    return {pid: ((at / "cmdline").read_bytes(), (at / "environ").read_bytes()) for pid, at in told.items()}


def test_no_secret_is_on_a_command_line_or_in_an_environment(host: Host, lived: Lived) -> None:
    office, plant = family(host.process.pid), family(lived.agent.pid)
    lines = b" ".join(line for line, _ in office.values())
    assert all(part in lines for part in (b"mlflow_pages", b"prefect", b"nats-server", b"api.app", b"flows.runner"))
    shown = [
        (name, line) for line, told in [*office.values(), *plant.values()]
        for name, secret in lived.secrets.items() if secret.encode() in line or secret.encode() in told
    ]
    assert shown == []
    assert all(b"PREFECT_PROFILES_PATH=" in told for line, told in office.values() if b"flows.runner" in line)
    typed = [" ".join(words) for words in lived.commands]
    assert not [name for name, secret in lived.secrets.items() if any(secret in line for line in typed)]


def logs_of(host: Host, lived: Lived) -> dict[str, str]:
    folder = host.settings.home / "logs"
    paths = [*folder.iterdir(), host.settings.bus_folder / "nats.log", host.settings.home.parent / "said",
             lived.plant / "console.log", lived.plant / "site.log"]
    return {path.name: path.read_text() for path in paths}


def test_no_secret_is_in_a_log(host: Host, lived: Lived) -> None:
    logs = logs_of(host, lived)
    assert {"api.log", "flows.log", "mlflow.log", "prefect.log", "site.log"} <= set(logs)
    shown = [(name, file) for file, text in logs.items() for name, secret in lived.secrets.items() if secret in text]
    assert shown == []
    assert not [file for file, text in logs.items() if SEEN_VALUE in text]


def test_lines_are_json_and_say_of_what_they_speak(host: Host, lived: Lived) -> None:
    logs = logs_of(host, lived)
    said = {
        name: [json.loads(line) for line in logs[name].splitlines() if line.startswith("{")]
        for name in ("flows.log", "site.log", "console.log")
    }
    for name, lines in said.items():
        assert lines and {"time", "level", "logger", "message"} <= set(lines[0]), name
    for name in ("site.log", "console.log"):
        assert len(said[name]) == len(logs[name].splitlines())
        assert all(line["site_id"] == "plant-9" for line in said[name])
    answered = [line for line in said["site.log"] if line["message"].startswith("answered round")]
    assert {line["round"] for line in answered} == set(range(1, len(answered) + 1)) and len(answered) >= 1
    of_the_run = {line["run_id"] for line in answered}
    assert len(of_the_run) == 1
    assert of_the_run <= {line.get("run_id") for line in said["flows.log"]}
