"""The import contracts hold, and each fails when somebody breaks it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("models", "services", "flows", "api", "migrations")


def copied(folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "lint-imports"
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [str(program), "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_tree_keeps_every_contract(tmp_path: Path) -> None:
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout


PLANTED = (
    ("services/site_agent/connection/link.py", "services.site_agent.vault", "The plant link and the vault"),
    ("services/site_agent/agent.py", "services.site_agent.vault.reader", "Only the one door opens"),
    ("services/site_agent/own_use/local_predictor.py", "services.site_agent.vault.reader", "Only the one door opens"),
    ("services/site_agent/limits/work.py", "services.site_agent.door.refusals", "The rooms of the site agent"),
    ("services/contracts/machines/target.py", "services.contracts.plans.waiting", "The rooms of contracts"),
    ("services/coordinator/asking/poll.py", "services.coordinator.run_state.terms", "The rooms of the coordinator"),
    ("services/round_store/plans/plans.py", "services.round_store.plants.sites", "The rooms of the round store"),
    ("services/contracts/wire/roll.py", "services.process.settings", "Layers"),
    ("services/coordinator/training.py", "services.round_store.runs.runs", "Layers"),
    ("services/coordinator/training.py", "services.site_agent.agent", "Nothing on the OEM's side"),
    ("services/contracts/plans/plan.py", "services.registry.gates", "Layers"),
    ("models/problem.py", "services.contracts.plans.plan", "Layers"),
    ("models/geometry/norms.py", "models.problem", "The rooms of models"),
    ("models/cuts/lower_bound.py", "models.methods.certified", "The rooms of models"),
    ("models/prox/bundle.py", "models.fairness.indices", "The rooms of models"),
    ("services/registry/labels.py", "services.registry.mlflow_registry", "No circle of imports anywhere"),
    ("models/problem.py", "cvxpy", "Only models.reference imports CVXPY"),
    ("models/problem.py", "sklearn", "Only models.estimators imports scikit-learn"),
    ("models/problem.py", "pydantic", "The mathematics imports numpy, scipy and solvers only"),
    ("services/site_agent/answers/local_scores.py", "scipy", "The plant's side needs no SciPy"),
    ("models/geometry/norms.py", "highspy", "Only models.geometry.linear_program imports HiGHS"),
    ("services/site_agent/agent.py", "sqlalchemy", "The plant's side needs none"),
    ("api/web/errors.py", "flows.retrain", "Layers"),
    ("api/sites/endpoints.py", "api.plans.endpoints", "Within the API"),
    ("api/backend/wiring.py", "api.web.errors", "Within the API"),
    ("api/tokens/service.py", "fastapi", "Of the API only endpoints"),
    ("api/cli/common.py", "fastapi", "Of the API only endpoints"),
)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What is said of a tree in which every planted import stands."""
    folder = copied(tmp_path_factory.mktemp("tree"))
    for module, target, _ in PLANTED:
        with (folder / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {target}\n")
    return lint(folder)


@pytest.mark.parametrize(("module", "target", "contract"), PLANTED)
def test_a_planted_import_breaks_its_contract(
    broken: subprocess.CompletedProcess[str], module: str, target: str, contract: str
) -> None:
    assert broken.returncode != 0
    assert re.search(rf"{re.escape(contract)}.*BROKEN", broken.stdout), broken.stdout
    told = broken.stdout[broken.stdout.index("Broken contracts") :]
    title = rf"^{re.escape(contract)}[^\n]*\n(?:[^\n]+\n)?-+\n"
    section = re.search(title + r"(.*?)(?=^[^\n]+\n-{4,}|\Z)", told, re.M | re.S)
    assert section is not None, told
    importer = module.removesuffix(".py").replace("/", ".")
    pairs = [(importer, target)]
    if contract == "No circle of imports anywhere":  # which of the two ways is named, the fewer imports decide
        pairs = [(".labels", ".mlflow_registry"), (".mlflow_registry", ".labels")]
    assert any(re.search(rf"{re.escape(a)}\s+->\s+{re.escape(b)}", section[1]) for a, b in pairs), section[1]


def test_no_import_is_hidden_from_the_graph() -> None:
    tricks = re.compile(r"\b(importlib|__import__|exec\(|eval\()")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if tricks.search(line) and "importlib.metadata" not in line and "importlib.resources" not in line
    ]
    assert not found, "\n".join(found)


def test_nothing_is_pickled() -> None:
    found = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"^\s*(import|from) (pickle|cloudpickle|joblib|dill)\b|allow_pickle=True", path.read_text(), re.M)
    ]
    assert not found
