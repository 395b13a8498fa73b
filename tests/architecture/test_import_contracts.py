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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
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


def test_the_tree_keeps_every_contract(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("services/site_agent/link.py", "import services.site_agent.vault", "The plant link and the vault"),
        ("services/site_agent/agent.py", "import services.site_agent.vault.reader", "Only the one door opens"),
        ("services/coordinator/training.py", "import services.round_store.runs", "Layers"),
        ("services/coordinator/training.py", "import services.site_agent.agent", "Nothing on the OEM's side"),
        ("services/contracts/plan.py", "import services.registry.gates", "Layers"),
        ("models/problem.py", "import services.contracts.plan", "Layers"),
        ("models/problem.py", "import cvxpy", "Only models.reference imports CVXPY"),
        ("models/problem.py", "import sklearn", "Only models.estimators imports scikit-learn"),
        ("models/problem.py", "import pydantic", "The mathematics imports numpy and scipy only"),
        ("services/site_agent/agent.py", "import sqlalchemy", "The plant's side needs none"),
        ("api/errors.py", "import flows.retrain", "Layers"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, planted: str, contract: str) -> None:
    file = copy / module
    before = file.read_text(encoding="utf-8")
    file.write_text(before + f"\n{planted}\n", encoding="utf-8")
    try:
        done = lint(copy)
    finally:
        file.write_text(before, encoding="utf-8")
    assert done.returncode != 0
    assert re.search(rf"{re.escape(contract)}.*BROKEN", done.stdout), done.stdout


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
