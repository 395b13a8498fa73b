"""The compose file's walls: which network each part is in, what is published, and which secrets each part sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from api.cli.processes import first_files

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
NATS = {"nats-1", "nats-2", "nats-3"}


def test_parts_that_need_not_see_one_another_share_no_network() -> None:
    members = {net: {name for name, each in SERVICES.items() if net in each.get("networks", ())}
               for net in COMPOSE["networks"]}
    assert members == {
        "stores": {"postgres", "prepare", "prefect", "mlflow", "api", "flows", *NATS},
        "flows": {"prefect", "flows"}, "link": {"flows", *NATS}, "outside": {"mlflow", "api"},
    }
    inside = {net for net, said in COMPOSE["networks"].items() if (said or {}).get("internal")}
    assert inside == {"stores", "flows"}
    assert SERVICES["files"]["network_mode"] == "none"  # who makes the keys speaks to nobody


def test_only_the_api_and_the_plant_link_are_reached_from_other_hosts() -> None:
    published = {name: each["ports"] for name, each in SERVICES.items() if each.get("ports")}
    assert set(published) == {"api", "mlflow", *NATS}
    for name, ports in published.items():
        (port,) = ports
        assert port.startswith("127.0.0.1:") == (name == "mlflow")


def test_every_secret_is_seen_by_those_who_need_it() -> None:
    seen: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for each in service.get("secrets", ()):
            seen.setdefault(each["source"] if isinstance(each, dict) else each, set()).add(name)
    assert seen == {
        "postgres-password": {"postgres"}, "databases": {"postgres"}, "prefect-url": {"prefect"},
        "database-url": {"api", "flows", "prepare", *NATS}, "mlflow-url": {"api", "flows", "prepare", "mlflow"},
        "coordinator-seed": {"api", "flows"}, "nats-ca": {"api", "flows"}, "prefect-auth": {"flows"},
        "api-certificate": {"api"}, "api-key": {"api"},
    }
    assert set(seen) == set(COMPOSE["secrets"])


def test_no_other_part_sees_the_folders_of_secrets() -> None:
    """Each NATS server has its own; Prefect's and MLflow's pages have theirs, which they may not change."""
    mounted = {name: [each for each in service.get("volumes", ()) if each.startswith(".")]
               for name, service in SERVICES.items()}
    assert {name: folders for name, folders in mounted.items() if folders} == {
        "files": ["./secrets:/out"], "prefect": ["./secrets/servers:/data/secrets:ro"],
        "mlflow": ["./secrets/servers:/data/secrets:ro"],
        **{name: [f"./secrets/nats/{name}:/data/nats"] for name in NATS},
    }
    assert "artifacts:/artifacts:ro" in SERVICES["mlflow"]["volumes"]  # pages alone


def test_what_is_mounted_is_what_the_first_files_are(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert first_files.main([str(folder)]) == 0
    for secret in COMPOSE["secrets"].values():
        assert (folder / secret["file"].removeprefix("./secrets/")).is_file()
    for name in NATS:
        assert (folder / "nats" / name / "nats.conf").is_file()


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_nothing_starts_before_its_stores_are_prepared(name: str) -> None:
    service = SERVICES[name]
    waits = {each: said["condition"] for each, said in service.get("depends_on", {}).items()}
    if name in ("postgres", "files"):
        assert not waits
    elif name == "prepare":
        assert waits == {"postgres": "service_healthy"}
    else:
        assert waits["prepare"] == "service_completed_successfully"
    assert service["restart"] == ("no" if name in ("files", "prepare") else "unless-stopped")
