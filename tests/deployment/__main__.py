"""The images and the compose file under a real container engine, from nothing: ``python -m tests.deployment``.

First files, all parts healthy, three plants enrolled by code with the site image, a plan trained and promoted, a
diagnosis over REST; then a NATS server is killed in the middle of a run, a part is restarted, and all is ended and
started again. It needs root (the files belong to the containers' users), Docker or Podman with its compose command, and
the two images; where there is no engine it says so and ends with exit code 0, for nothing was tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from api.cli.demonstration import demo_plants
from services.contracts.documents import to_plain
from services.plant_simulator.assets import builtin_asset_type
from tests.deployment.compose import USER, Deployment, find_engine

NAME = "ballast.example.com"
ASSET_TYPE, PLAN = "triplex-pump", "pump-leak"
SITES = ("plant-1", "plant-2", "plant-3")
SHUT = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
RUN_SECONDS = 900.0


class Trial:
    """A deployment, its plants, and a caller of its API."""

    def __init__(self, folder: Path, deployment: Deployment, image: str, ports: dict[str, int]) -> None:
        self.folder, self.deployment, self.image, self.ports = folder, deployment, image, ports
        self.api: httpx.Client

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def sign_in(self) -> None:
        """A token made in the API's container; the API is known by the authority of the first files."""
        token = json.loads(self.deployment.ballast(
            "token", "create", "--role", "administrator", "--name", "trial", "--json"))["token"]
        authority = ssl.create_default_context(cafile=str(self.folder / "secrets" / "api" / "ca.pem"))
        self.api = httpx.Client(base_url=f"https://localhost:{self.ports['API']}", verify=authority, timeout=60.0,
                                headers={"Authorization": f"Bearer {token}"})

    def site(self, name: str, *words: str, options: tuple[str, ...] = ("--rm",)) -> str:
        """Run the site image, shut as its Containerfile says; the plant meets the OEM by the host's address alone."""
        done = subprocess.run(
            [*self.deployment.engine, "run", *options, *SHUT, "--add-host", f"{NAME}:{own_address()}",
             "-v", f"{self.folder / 'agents' / name}:/site", "-v", f"{self.folder / 'data' / name}:/data/{name}:ro",
             self.image, *words],
            capture_output=True, text=True, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
        return done.stdout

    def join(self) -> None:
        """Simulate the plants' data, enrol each plant by a code of its own, and start its agent."""
        subprocess.run([str(Path(sys.executable).parent / "ballast"), "simulate", "--out", str(self.folder / "data"),
                        "--sites", str(len(SITES))], check=True, capture_output=True)
        for path in [self.folder / "data", *(self.folder / "data").rglob("*")]:
            os.chown(path, USER, USER)
        for name in SITES:
            home = self.folder / "agents" / name
            home.mkdir(parents=True, mode=0o700)
            os.chown(home, USER, USER)
            code = json.loads(self.deployment.ballast("site", "enrol-code", name, "--json"))["code"]
            self.site(name, "enrol", "--url", f"https://{NAME}:{self.ports['API']}", "--code", code,
                      "--dir", f"/site/{name}", "--data", f"/data/{name}", "--own-scores")
            self.site(name, "run", "--config", f"/site/{name}/site.toml",
                      options=("-d", "--name", agent_container(name)))

    def start_run(self) -> str:
        return str(self.call("POST", f"/v1/admin/plans/{PLAN}/trigger")["run_id"])

    def wait_for_run(self, run_id: str, rounds: int | None = None) -> dict[str, Any]:
        """Wait until the run is completed, or has so many rounds; ``RuntimeError`` where it ends in another way."""
        deadline = time.monotonic() + RUN_SECONDS
        while time.monotonic() < deadline:
            run: dict[str, Any] = self.call("GET", f"/v1/runs/{run_id}")
            if run["status"] == "completed" or (rounds is not None and run["rounds"] >= rounds):
                return run
            if run["status"] in ("failed", "cancelled"):
                raise RuntimeError(f"the run {run['status']}: {run['reason']}")
            time.sleep(0.2)
        raise RuntimeError(f"run {run_id} did not end in {RUN_SECONDS:.0f} s")

    def diagnose(self) -> str:
        """A diagnosis of a fresh measurement of a leaking pump; the version that made it."""
        answer = self.call("POST", f"/v1/models/{PLAN}/diagnose", {"samples": [demo_plants.fresh_measurement(7)]})
        label = answer["diagnoses"][0]["fault_class"]
        say(f"  version {answer['model_version']} says: {label}")
        return str(answer["model_version"])


def agent_container(name: str) -> str:
    return f"ballast-trial-{name}"


def own_address() -> str:
    """The address by which this host is found; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as look:
        look.connect(("192.0.2.1", 9))
        return str(look.getsockname()[0])


def say(text: str) -> None:
    print(text, flush=True)


def go(trial: Trial) -> None:
    """The whole of it; an exception where something does not hold."""
    deployment = trial.deployment
    say("first files, then every part")
    deployment.make_files()
    deployment.up()
    trial.sign_in()
    trial.call("PUT", f"/v1/admin/asset-types/{ASSET_TYPE}", to_plain(builtin_asset_type(ASSET_TYPE)))
    say("three plants enrol by code")
    trial.join()
    choice = argparse.Namespace(method="cohort-bundle", sites=len(SITES))
    trial.call("POST", "/v1/admin/plans", demo_plants.plan(PLAN, ASSET_TYPE, choice) | {"warm_start": False})
    say("a run")
    run = trial.wait_for_run(trial.start_run())
    say(f"  completed after {run['rounds']} rounds, certified gap {float(run['gap']):.1e}: {run['reason']}")
    trial.diagnose()
    say("a run, in which a NATS server is killed")
    second = trial.start_run()
    at = trial.wait_for_run(second, rounds=2)
    deployment.kill("nats-2")
    say(f"  nats-2 killed at round {at['rounds']}, when the run was {at['status']}")
    say(f"  completed after {trial.wait_for_run(second)['rounds']} rounds")
    deployment.compose("up", "-d", "--no-deps", "nats-2")
    deployment.wait_for_health("nats-2")
    say("flows and API restarted")
    deployment.restart("flows")
    deployment.restart("api")
    version = trial.diagnose()
    say("all ended, and started again")
    deployment.compose("down")
    deployment.up()
    if trial.diagnose() != version:
        raise RuntimeError("another version is champion after down and up")
    say(f"  a run after that: {trial.wait_for_run(trial.start_run())['status']}")
    lines = deployment.logs("nats-1").count("TLS Handshake Failure")
    if lines > 20:
        raise RuntimeError(f"the NATS servers do not trust one another: {lines} refused handshakes")


def main() -> int:
    """Try it in a temporary folder; everything that it made is gone at the end (``--keep``: stays)."""
    parser = argparse.ArgumentParser(prog="python -m tests.deployment", description=__doc__)
    parser.add_argument("--server-image", default="ballast-server:0.1.0")
    parser.add_argument("--site-image", default="ballast-site:0.1.0")
    parser.add_argument("--first-port", type=int, default=33400, help="five ports from here are published")
    parser.add_argument("--keep", action="store_true", help="leave all as it is at the end")
    chosen = parser.parse_args()
    commands = find_engine()
    if commands is None or os.geteuid() != 0:
        say("nothing was tried: it needs root, and Docker with compose, or Podman with podman-compose")
        return 0
    ports = {name: chosen.first_port + k for k, name in enumerate(("NATS_1", "NATS_2", "NATS_3", "API", "MLFLOW"))}
    settings = {f"BALLAST_{name}_PORT": str(port) for name, port in ports.items()} | {
        "BALLAST_IMAGE": chosen.server_image, "BALLAST_HOST_NAMES": f"{NAME},localhost",
        "BALLAST_NATS_PLANT_SERVERS": ",".join(f"tls://{NAME}:{ports[f'NATS_{k}']}" for k in (1, 2, 3)),
    }
    folder = Path(tempfile.mkdtemp(prefix="ballast-deployment-"))
    folder.chmod(0o755)
    deployment = Deployment(folder, *commands, settings)
    try:
        go(Trial(folder, deployment, chosen.site_image, ports))
        say("all of it held")
        return 0
    finally:
        if not chosen.keep:
            for name in SITES:
                subprocess.run([*commands[0], "rm", "-f", agent_container(name)], capture_output=True, check=False)
            deployment.compose("down", "-v", check=False)
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
