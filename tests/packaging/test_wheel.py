"""What `pip install` of the wheel gives, in an environment that has the dependencies and not the clone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = {"models", "services", "flows", "api", "migrations"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the dependencies are seen where the tests have them, the clone is not."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is added as it is: what its own .pth files name, the clone among it, is not.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder


def _run(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in a folder that is not the clone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BALLAST", "COV"))}
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=folder, env=clean, capture_output=True, text=True, check=False)


def _python(environment: Path, folder: Path, code: str) -> str:
    done = _run(environment, folder, "python", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_top_level_name_is_ours_alone(environment: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.metadata as m\n"
        "found = m.packages_distributions()\n"
        "ours = {n for n, owners in found.items() if 'ballast-diagnosis' in owners and not n.startswith('_')}\n"
        "print(sorted(ours))\n"
        "print({n: owners for n in ours if (owners := set(found[n])) != {'ballast-diagnosis'}})"
    )
    names, clashes = _python(environment, tmp_path, code).splitlines()
    assert names == str(sorted({*NAMES, "ballast"}))
    assert clashes == "{}"


@pytest.mark.parametrize("program", ["ballast", "ballast-site"])
def test_the_commands_are_there(environment: Path, tmp_path: Path, program: str) -> None:
    done = _run(environment, tmp_path, program, "--help")
    assert done.returncode == 0, done.stderr
    assert f"usage: {program}" in done.stdout


def test_the_estimators_run_from_the_installed_files(environment: Path, tmp_path: Path) -> None:
    code = (
        "import models, numpy as np\n"
        "from models.estimators import FederatedDRSVC\n"
        "X = np.array([[0.0], [0.2], [0.8], [1.0]]); y = np.array([0, 0, 1, 1])\n"
        "model = FederatedDRSVC(radius=0.01).fit(X, y, groups=[0, 1, 0, 1])\n"
        "print(model.certified_gap_ < 1e-2, models.__file__)"
    )
    said, file = _python(environment, tmp_path, code).split()
    assert said == "True"
    assert Path(file).is_relative_to(environment)


def test_the_client_has_a_name_of_its_own(environment: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from ballast.client import ApiError, Client; Client('https://ballast.example.com', 'blst_')\n"
        "print(sorted({'fastapi', 'httpx', 'sqlalchemy', 'mlflow', 'prefect', 'joserfc'} & set(sys.modules)))"
    )
    assert _python(environment, tmp_path, code) == "[]\n"


def test_the_migrations_are_inside(environment: Path, tmp_path: Path) -> None:
    code = "from migrations.run import head, upgrade; print(upgrade('sqlite:///new.db') == head())"
    assert _python(environment, tmp_path, code) == "True\n"
    assert (tmp_path / "new.db").stat().st_size > 0


def test_every_file_of_the_packages_is_inside(environment: Path) -> None:
    """Code, templates, pages and the simulator's asset types; compiled files and caches are not."""
    (site,) = environment.glob("lib/python*/site-packages")

    def files(root: Path) -> set[str]:
        paths = (path for name in NAMES for path in (root / name).rglob("*") if path.is_file())
        return {str(path.relative_to(root)) for path in paths if "__pycache__" not in path.parts}

    assert files(ROOT) - {"api/client/published.py"} == files(site), "that one is ballast/client.py"
