"""What the chart asks of Kubernetes: pods without rights, secrets for who needs them, probes that tell the truth."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from api.cli.commands import bus, up
from api.cli.commands.health import PROBES
from api.cli.main import make_parser
from services.process.environment import ENVIRONMENT, IN_A_FILE
from tests.packaging import chart

jsonschema: Any = pytest.importorskip("jsonschema")
PODS = chart.pods()
PARTS = ["api", "flows", "mlflow", "nats", "prefect"]


def containers(part: str) -> list[dict[str, Any]]:
    return [*PODS[part].get("initContainers", []), *PODS[part]["containers"]]


def files_of(part: str) -> set[str]:
    (files,) = [each["secret"] for each in PODS[part]["volumes"] if each["name"] == "files"]
    assert files["secretName"] == "ballast-files"
    return {each["path"] for each in files["items"]}


def test_the_values_fit_their_schema_and_all_have_a_place_in_it() -> None:
    values = yaml.safe_load((chart.FOLDER / "values.yaml").read_text())
    schema = json.loads((chart.FOLDER / "values.schema.json").read_text())
    jsonschema.validate(values, schema)
    for name, given in values.items():
        if isinstance(given, dict):
            assert set(given) == set(schema["properties"][name]["properties"])


@pytest.mark.parametrize("part", sorted(PODS))
def test_a_pod_has_no_rights(part: str) -> None:
    pod = PODS[part]
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    for each in containers(part):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= set(each["resources"])
        assert "hostPort" not in json.dumps(each.get("ports", []))


def test_a_secret_is_seen_by_those_who_need_it() -> None:
    seen = {key: {part for part in PODS if key in files_of(part)} for part in PODS for key in files_of(part)}
    assert seen["coordinator.nk"] == {"api", "flows"}
    assert seen["server.key"] == {"api"} and seen["prefect-url"] == {"prefect"}
    assert seen["prefect"] == {"flows", "prefect", "mlflow"} and seen["mlflow"] == {"prefect", "mlflow"}
    assert seen["database-url"] == {"api", "flows", "prepare", "nats"}
    assert seen["mlflow-url"] == {"api", "flows", "prepare", "mlflow"}
    assert not {"postgres-password", "databases.sql"} & set(seen)


@pytest.mark.parametrize("part", sorted(PODS))
def test_secrets_are_files_for_the_pods_own_user_and_stand_in_no_environment(part: str) -> None:
    (files,) = [each["secret"] for each in PODS[part]["volumes"] if each["name"] == "files"]
    assert files["defaultMode"] == 0o440  # the group is the pod's, by fsGroup
    for container in containers(part):
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "files"]
        assert mount["readOnly"] is True and mount["mountPath"] == "/files"
        for each in container.get("env", []):
            name, value = each["name"], each.get("value", "")
            assert each.get("valueFrom", {}).keys() <= {"fieldRef"}
            if value.startswith("/files/"):
                assert value.removeprefix("/files/") in files_of(part)
            if name.startswith("BALLAST_") and name != "BALLAST_HOME":
                assert name in ENVIRONMENT or name.removesuffix(IN_A_FILE) in ENVIRONMENT
            assert "URL" not in name or name.endswith(IN_A_FILE) or name == "BALLAST_PREFECT_API_URL"


@pytest.mark.parametrize("part", PARTS)
def test_a_pod_runs_a_command_that_there_is(part: str) -> None:
    (container,) = PODS[part]["containers"]
    parser = make_parser({"up": up, "bus": bus})
    given = parser.parse_args(container["args"])
    assert part == "nats" or (given.command, given.only) == ("up", part)
    assert part != "nats" or container["args"][:3] == ["bus", "serve", "/files/$(POD_NAME)"]
    writable = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert writable == {"/data", "/tmp"} | ({"/artifacts"} if part in ("api", "flows", "mlflow") else set())


def test_a_probe_asks_the_part_that_it_is_of_and_no_store_before_a_restart() -> None:
    """A pod that is started again because PostgreSQL is away is no help: the API says so at /readyz, and lives."""
    api = PODS["api"]["containers"][0]
    paths = {name: api[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: each["path"] for name, each in paths.items()} == {
        "startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz",
    }
    assert {(each["port"], each["scheme"]) for each in paths.values()} == {("https", "HTTPS")}
    for part in PARTS:
        (container,) = PODS[part]["containers"]
        ports = {each["name"] for each in container.get("ports", [])}
        for probe in (container[name] for name in container if name.endswith("Probe")):
            if "exec" in probe:
                assert probe["exec"]["command"][-2:] == ["health", part] and part in PROBES
                assert probe["timeoutSeconds"] >= 10  # a command of Python's takes seconds on a busy node
            else:
                assert (probe.get("httpGet") or probe["tcpSocket"])["port"] in ports
        assert {"readinessProbe", "livenessProbe"} <= set(container)


def test_what_must_outlive_a_pod_has_a_claim_and_one_writer() -> None:
    deployments = chart.of_kind("Deployment")
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "ballast-api-home"}} in PODS["api"]["volumes"]
    assert list(chart.of_kind("PersistentVolumeClaim")) == ["ballast-api-home"]
    for name in ("ballast-api", "ballast-flows"):
        assert deployments[name]["spec"]["strategy"] == {"type": "Recreate"}
        assert deployments[name]["spec"]["replicas"] == 1
    claims = {part: [each["persistentVolumeClaim"]["claimName"] for each in PODS[part]["volumes"]
                     if each["name"] == "artifacts"] for part in PODS}
    assert {part for part, found in claims.items() if found == ["ballast-artifacts"]} == {
        "api", "flows", "mlflow", "prepare",
    }


def test_services_lead_to_pods_that_there_are_and_to_their_own_ports() -> None:
    for service in chart.of_kind("Service").values():
        part = service["spec"]["selector"]["app.kubernetes.io/component"]
        ports = {each["name"] for each in PODS[part]["containers"][0]["ports"]}
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= ports
    outside = {name: each["spec"].get("type") for name, each in chart.of_kind("Service").items()}
    assert {name for name, kind in outside.items() if kind} == {"ballast-plants"}


def test_not_all_of_a_part_go_at_once() -> None:
    budgets = chart.of_kind("PodDisruptionBudget")
    assert {name: each["spec"]["maxUnavailable"] for name, each in budgets.items()} == {
        f"ballast-{part}": 1 for part in ("nats", "api", "flows", "prefect")
    }
    assert chart.of_kind("StatefulSet")["ballast-nats"]["spec"]["replicas"] == 3


def test_a_digest_wins_over_a_tag_and_pages_may_be_left_out() -> None:
    digest = f"sha256:{'a' * 64}"
    found = chart.pods({"image": {"digest": digest}, "mlflow": {"enabled": False}, "artifacts": {"claim": ""}})
    assert "mlflow" not in found
    for pod in found.values():
        assert {each["image"] for each in pod["containers"]} == {f"ballast-server@{digest}"}
        assert "artifacts" not in {each["name"] for each in pod["volumes"]}
