"""Take away what a site agent never loads, and show that it works without: ``python trim_site.py /opt/ballast``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = (
    "api", "flows", "migrations", "bin", "services/coordinator", "services/registry", "services/round_store",
    "models/centralised", "models/estimators", "models/simulation", "numpy/distutils", "numpy/f2py",
)
UNUSED = (  # what compilers read, what tests of NumPy load, and the second copy of a library that a link would be
    "*.pyi", "*.pyx", "*.pxd", "*.h", "*.a", "numpy/_core/_*_tests.*.so", "numpy/_core/_simd.*.so",
    "highspy/libhighs.so.*.*",
)
WORKS = """
import importlib, pkgutil, sys
SERVERS = (
    "models.reference", "models.fairness.quadratic", "models.cuts.stated_program", "models.solvers.active_set",
    "models.solvers.arrow_rows", "models.solvers.cone_program", "models.solvers.conic_interior_point",
    "models.solvers.dense_interior_point", "models.solvers.height_blocks", "models.solvers.newton_factor",
)
for name in ("services.site_agent", "services.masking", "services.contracts", "services.verification", "models"):
    package = importlib.import_module(name)
    for each in pkgutil.walk_packages(package.__path__, name + "."):
        if not each.name.startswith(SERVERS) and not each.name.endswith("__main__"):
            importlib.import_module(each.name)
import numpy as np
from models.geometry.supports import PolytopeSupport
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from models.worst_case.radius import estimated_radius
PolytopeSupport(np.array([[1.0], [-1.0]]), np.ones(2))
rows, labels = np.linspace(0.0, 1.0, 40).reshape(20, 2), np.repeat([-1.0, 1.0], 10)
estimated_radius(rows, labels, label_flip_cost=1.0, transport_norm="l2", confidence=0.9, seed=0)
assert robust_prox(SiteProblem(rows, labels, RobustSpec(0.01, 1.0)), np.zeros(3), 0.1).gap < 1e-9
assert not {"scipy", "cvxpy"} & set(sys.modules)
"""


def trim(folder: Path) -> None:
    """Remove the server's side, tests, what compilers read, and what of NumPy and HiGHS nothing loads."""
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for tests in [path for path in folder.rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests, ignore_errors=True)
    for pattern in UNUSED:
        for file in list(folder.rglob(pattern)):
            file.unlink()


def main() -> int:
    """Trim the folder; the exit code of a process that imports all that the agent may, and solves."""
    folder = Path(sys.argv[1]).resolve()
    trim(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB")
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-S", "-c", WORKS], env=environment, cwd="/", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
