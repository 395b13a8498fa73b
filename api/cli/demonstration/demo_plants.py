"""The demo's plants: simulate them, set their agents up as a plant's staff would, and enrol them.

The plants' side is reached by its command ``ballast-site`` alone, as it would be at a customer's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from api.cli.processes.child_environment import of_a_child
from api.cli.processes.supervisor import Child
from api.cli.rest import RestClient
from models.cohorts.dealing import LEAST_COHORT
from models.features.condition_indicators import INDICATOR_NAMES, condition_indicators
from models.methods.catalogue import get_method
from services.contracts.documents import to_plain
from services.contracts.errors import BallastError
from services.contracts.keys.signing import public_key
from services.contracts.plans.gates import Gates
from services.contracts.plans.plan import Plan
from services.contracts.wire.messages import Reveal
from services.plant_simulator.assets import builtin_asset_type, builtin_asset_type_path
from services.plant_simulator.measure import SAMPLING_RATE, simulate_measurement
from services.process.settings import Settings

FRESH_SEVERITY = 7e-3  # a leak as at the third of the study's four plants
REFUSED_WITHIN = 20.0
"""Seconds within which an agent whose key is refused ends: it starts, and tries the key for some more."""
MIN_SITES = 3  # so that the demo goes on without one of its four plants


def start_simulation(settings: Settings, sites: int, seed: int, scenario: str) -> subprocess.Popen[str]:
    """Start ``ballast simulate`` in the background."""
    command = [
        *ballast("simulate"), "--out", str(settings.home / "plants"), "--sites", str(sites), "--seed", str(seed),
        "--scenario", scenario,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_simulation(simulation: subprocess.Popen[str], settings: Settings, sites: int) -> dict[str, Path]:
    """Folders of the plants' raw signals, by site id; ``BallastError`` where the simulation failed."""
    _wait(simulation, "the simulation")
    return {f"plant-{k + 1}": settings.home / "plants" / f"plant-{k + 1}" for k in range(sites)}


def make_token(settings: Settings) -> str:
    """Make an administrator's token with the command line and keep it in the demo's folder."""
    answer = _output([*ballast("token", "create"), "--role", "administrator", "--name", "demo", "--json"], settings)
    token = str(json.loads(answer)["token"])
    file = settings.home / "token"
    file.touch(mode=0o600)
    file.write_text(token + "\n", encoding="utf-8")
    return token


def reveal(method: str, sites: int) -> Reveal:
    """What the coordinator sees of so many plants: sums, where the method works on them and a cohort hides enough."""
    return "sums" if sites >= LEAST_COHORT and get_method(method).on_sums else "each site"


def enrol_sites(
    api: RestClient, settings: Settings, folders: Mapping[str, Path], asset_type: str, method: str
) -> None:
    """Set up each site's folder with its own key, then give the OEM the asset type and the public keys.

    ``BallastError`` where a site's ``init`` failed.
    """
    api.call("PUT", f"/v1/admin/asset-types/{asset_type}", to_plain(builtin_asset_type(asset_type)))
    setups = {site: subprocess.Popen(
        [
            *ballast_site("init"), "--site-id", site, "--dir", str(site_folder(settings, site)),
            "--asset-type", str(builtin_asset_type_path(asset_type)), "--data", str(folder),
            "--server", settings.nats_servers[0], "--ca", str(settings.nats_authority),
            "--oem-key", public_key(settings.nats_seed), "--allow-method", method,
            "--own-scores", "--tell-figures", *(() if reveal(method, len(folders)) == "sums" else ("--seen-alone",)),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) for site, folder in folders.items()}
    for site, process in setups.items():
        _wait(process, f"ballast-site init of {site}")
        config = str(site_folder(settings, site) / "site.toml")
        key = _output([*ballast_site("key", "show"), "--config", config], settings).strip()
        api.call("POST", "/v1/admin/sites", {"site_id": site, "public_key": key, "asset_types": [asset_type]})


def agent_commands(settings: Settings, sites: Sequence[str] | Mapping[str, Path]) -> dict[str, list[str]]:
    """Command of each site's agent."""
    return {
        site: [*ballast_site("run"), "--config", str(site_folder(settings, site) / "site.toml")] for site in sites
    }


def agent(site: str, command: Sequence[str]) -> Child:
    """Return a site's agent as a child of the supervisor; the demo goes on without one that left or was suspended."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return Child(site, command, lambda: True, environment=threads, vital=False, shortest_life=REFUSED_WITHIN)


def plan(name: str, asset_type: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the plan that the demo trains, as the API takes it.

    Only the bundles come to a gap of 1e-3 in these rounds; the papers' methods are not asked for it.
    """
    max_gap = 1e-3 if arguments.method.startswith(("level-bundle", "cohort-bundle")) else None
    wanted = Plan(
        name=name, asset_type=asset_type, method=arguments.method, min_sites=min(MIN_SITES, arguments.sites),
        reveal=reveal(arguments.method, arguments.sites),
        max_rounds=200, round_deadline_seconds=20.0, cron="0 3 * * 1",
        gates=Gates(max_gap=max_gap, min_f1=0.8 if max_gap else None, min_site_f1=0.7 if max_gap else None),
    )
    return dict(to_plain(wanted))


def fresh_measurement(seed: int) -> dict[str, float]:
    """Return features of a new measurement of a leaking pump, by name."""
    signals = simulate_measurement("leak", FRESH_SEVERITY, seed)
    flow = np.asarray(signals["flow"], dtype=np.float64)[np.newaxis, :]
    values = condition_indicators(flow, SAMPLING_RATE)[0]
    return {name: float(value) for name, value in zip(INDICATOR_NAMES, values, strict=True)}


def site_folder(settings: Settings, site: str) -> Path:
    """Where a site's agent lives."""
    return settings.home / "sites" / site


def ballast(*words: str) -> list[str]:
    """Command line of the OEM's command."""
    return [str(Path(sys.executable).parent / "ballast"), *words]


def ballast_site(*words: str) -> list[str]:
    """Command line of the plant's command."""
    return [str(Path(sys.executable).parent / "ballast-site"), *words]


def _output(command: Sequence[str], settings: Settings) -> str:
    done = subprocess.run(
        command, env=of_a_child(settings), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BallastError(f"{' '.join(command[:3])} failed: {_last_line(done.stderr)}")
    return done.stdout


def _wait(process: subprocess.Popen[str], what: str) -> None:
    """Wait for the end of a process; :class:`BallastError` with its last line where it failed."""
    _, errors = process.communicate()
    if process.returncode != 0:
        raise BallastError(f"{what} failed: {_last_line(errors)}")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
