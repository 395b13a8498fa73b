"""``ballast demo``: simulated plants and the whole service on this machine, driven through the REST API."""

from __future__ import annotations

import argparse
import shutil
import signal
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import ValidationError

from api.cli.commands import up
from api.cli.demonstration import demo_plants
from api.cli.demonstration.demo_account import Account, account_of_fairness, account_of_sites, render
from api.cli.processes import listening, stack
from api.cli.processes.supervisor import Supervisor
from api.cli.rest import RestClient
from models.basics import ProblemError
from services.contracts.errors import BallastError, ConflictError, InvalidInputError
from services.contracts.plans.plan import Plan
from services.contracts.reading import explain
from services.plant_simulator.scenarios import TEST, TRAINING, plan_plants
from services.process.private_files import private_folder
from services.process.process_lock import held, is_held
from services.process.settings import FILE_NAME, Settings

MARKED = "DEMO"  # the file that says whose the folder is, locked while a demo runs in it
MARKER = "this folder belongs to ballast demo"
PLAN = "pump-leak"
ASSET_TYPE = "triplex-pump"
RUN_SECONDS = 300.0  # many times what a run of the demo takes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--exit", action="store_true", help="stop everything at the end (default: stay until Ctrl-C)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the account as JSON")
    parser.add_argument(
        "--home", type=Path, default=Path(".ballast/demo"),
        help="folder of the demo, emptied first (default .ballast/demo)",
    )
    parser.add_argument("--sites", type=int, default=4, help="number of plants (default 4)")
    parser.add_argument(
        "--scenario", default="nominal", help="nominal, client-imbalance, class-imbalance, both or noisy-labels"
    )
    parser.add_argument("--method", default="cohort-bundle", help="training method (default cohort-bundle, on sums)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulator")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 when a diagnosis came out at the end, 1 when it was stopped before."""
    started, done = time.monotonic(), False
    check(arguments)
    stopped = end_when_told()
    settings = prepare_home(arguments.home.resolve())
    try:
        with held(settings.home / MARKED), Supervisor(stack.log_folder(settings), say) as supervisor:
            account = train_and_diagnose(supervisor, settings, arguments, started)
            print(render(account), flush=True)
            if arguments.json:
                arguments.json.write_text(account.model_dump_json(indent=2) + "\n", encoding="utf-8")
            done = True
            if not arguments.exit:
                say(up.addresses(settings))
                token = (settings.home / "token").read_text().strip()
                say(f"token (administrator): {token}")
                say("the console, signed in (the token stands behind the #, which no server sees):")
                say(f"  {up.console_url(settings)}/sign-in#token={token}")
                say("Ctrl-C stops everything")
                while not stopped.wait(up.TEND_SECONDS):
                    supervisor.tend()
                say("stopped")
    except KeyboardInterrupt:
        say("stopped")
    return 0 if done else 1


def end_when_told() -> threading.Event:
    """Let Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` wherever we are, and set the event that is returned.

    The event is for the exception that is lost: Python ignores what a handler raises while garbage is collected. Ctrl-C
    that is ignored, as in a shell's background, stays ignored.
    """
    stopped = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stopped.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
    return stopped


def check(arguments: argparse.Namespace) -> None:
    """Refuse what the simulator, the plan or the account's file would, before anything is emptied or started."""
    plan_plants(arguments.scenario, arguments.sites, TRAINING, TEST, n_classes=2)
    if arguments.json is not None:
        folder = arguments.json.absolute().parent
        if arguments.json.is_dir() or not (folder.is_dir() or folder == arguments.home.absolute()):
            raise InvalidInputError(f"{arguments.json} cannot be written: it is a folder, or its folder is not there")
    try:
        demo_plants.plan(PLAN, ASSET_TYPE, arguments)
    except ProblemError as error:
        raise InvalidInputError(str(error)) from None
    except ValidationError as error:
        raise InvalidInputError(explain(error, Plan)) from None


def prepare_home(home: Path) -> Settings:
    """Empty the demo's folder and write its settings, with free ports.

    ``ConflictError`` for a folder of others, or of a demo that runs.
    """
    marker = home / MARKED
    if home.exists() and any(home.iterdir()) and not marker.exists():
        raise ConflictError(f"{home} is not empty and was not made by ballast demo; name another folder with --home")
    if is_held(marker):
        raise ConflictError(f"a demo runs in {home} already; stop it, or name another folder with --home")
    shutil.rmtree(home, ignore_errors=True)
    private_folder(home)
    marker.write_text(MARKER + "\n", encoding="utf-8")
    ports = {name: listening.free_port(port) for name, port in
             (("nats", 4222), ("prefect", 4200), ("mlflow", 5000), ("api", 8000))}
    text = "".join(f"[{name}]\nport = {port}\n\n" for name, port in ports.items())
    (home / FILE_NAME).write_text(text, encoding="utf-8")
    return Settings.load(home)


def train_and_diagnose(
    supervisor: Supervisor, settings: Settings, arguments: argparse.Namespace, started: float
) -> Account:
    """Simulate, start, enrol, train, promote, diagnose."""
    say(f"simulating {arguments.sites} plants ({arguments.scenario})")
    simulation = demo_plants.start_simulation(settings, arguments.sites, arguments.seed, arguments.scenario)
    up.start_all(supervisor, settings, say)
    token = demo_plants.make_token(settings)
    folders = demo_plants.wait_for_simulation(simulation, settings, arguments.sites)
    with RestClient(listening.api_url(settings), token) as api:
        reveal = demo_plants.reveal(arguments.method, arguments.sites)
        seen = "sums over the plants alone" if reveal == "sums" else "the answers of each plant"
        say(f"the coordinator sees {seen}; every plant's policy releases its own scores at the end")
        demo_plants.enrol_sites(api, settings, folders, ASSET_TYPE, arguments.method)
        for site, command in demo_plants.agent_commands(settings, folders).items():
            supervisor.start(demo_plants.agent(site, command))
        api.call("POST", "/v1/admin/plans", demo_plants.plan(PLAN, ASSET_TYPE, arguments))
        wait_for_sites(api, set(folders))
        training_started = time.monotonic()
        run_id = api.call("POST", f"/v1/admin/plans/{PLAN}/trigger")["run_id"]
        say(f"training, run {run_id}")
        finished = wait_for_run(api, run_id)
        training_seconds = time.monotonic() - training_started
        rounds = api.call("GET", f"/v1/runs/{run_id}/rounds")["rounds"]
        version = api.call("GET", f"/v1/models/{PLAN}/versions/champion")
        fairness = api.call("GET", f"/v1/models/{PLAN}/versions/champion/fairness")
        say("diagnosing a fresh measurement of a leaking pump")
        sample = demo_plants.fresh_measurement(arguments.seed + 1)
        diagnosis = api.call("POST", f"/v1/models/{PLAN}/diagnose", {"samples": [sample]})
    return Account(
        scenario=arguments.scenario, reveal=version["reveal"], rounds=finished["rounds"],
        certified_gap=version["certified_gap"],
        worst_case_risk=version["worst_case_risk"], f1=version["f1"], sites=account_of_sites(version, rounds),
        fairness=account_of_fairness(fairness),
        diagnosis=diagnosis["diagnoses"][0], model=PLAN, model_version=str(diagnosis["model_version"]), run_id=run_id,
        outcome=finished["reason"], mlflow_run_id=finished["mlflow_run_id"],
        prefect_flow_run_id=finished["flow_run_id"], seconds=time.monotonic() - started,
        training_seconds=training_seconds,
    )


def wait_for_sites(api: RestClient, wanted: set[str], seconds: float = 60.0) -> None:
    """Wait until every plant's agent has said hello; ``BallastError`` when one does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = {site["site_id"] for site in api.call("GET", "/v1/admin/sites")["sites"] if site["last_seen"]}
        if wanted <= seen:
            return
        time.sleep(0.2)
    raise BallastError(f"no hello from {', '.join(sorted(wanted - seen))} in {seconds:.0f} s; see the logs")


def wait_for_run(api: RestClient, run_id: str) -> dict[str, Any]:
    """Show the progress of a run until it ends; ``BallastError`` with its reason when it does not complete."""
    deadline = time.monotonic() + RUN_SECONDS
    shown = 0
    while time.monotonic() < deadline:
        run = api.call("GET", f"/v1/runs/{run_id}")
        if run["rounds"] >= shown + 10 and run["gap"] is not None:
            shown = run["rounds"]
            say(f"  round {shown}: certified gap {float(run['gap']):.1e}")
        if run["status"] in ("completed", "failed", "cancelled"):
            if run["status"] != "completed":
                raise BallastError(f"the run {run['status']}: {run['reason']}")
            return dict(run)
        time.sleep(0.25)
    raise BallastError(f"run {run_id} did not end in {RUN_SECONDS:.0f} s")


def say(text: str) -> None:
    """Tell the user."""
    print(text, flush=True)

