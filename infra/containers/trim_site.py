"""Take away what a site agent never loads, and show that it loads without: ``python trim_site.py /opt/ballast``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SERVER_SIDE = ("api", "flows", "migrations", "bin", "services/coordinator", "services/registry", "services/round_store")
SCIPY_UNUSED = (
    "cluster", "datasets", "differentiate", "fftpack", "integrate", "interpolate", "io", "misc", "ndimage", "odr",
    "signal", "stats",
)
UNUSED = (  # what compilers read, and what tests of NumPy and SciPy load
    "*.pyi", "*.pyx", "*.pxd", "*.h", "*.a", "numpy/_core/_*_tests.*.so", "numpy/_core/_simd.*.so",
    "scipy/_lib/_test_*.so", "scipy/special/_test_internal.*.so", "scipy/special/cython_special.*.so",
)
LOADS = """
import importlib, pkgutil
for name in ("services.site_agent", "services.masking", "services.contracts", "services.verification", "models"):
    package = importlib.import_module(name)
    for each in pkgutil.walk_packages(package.__path__, name + "."):
        if not each.name.startswith(("models.reference", "models.estimators")) and not each.name.endswith("__main__"):
            importlib.import_module(each.name)
from scipy.optimize import Bounds, LinearConstraint, brentq, linear_sum_assignment, linprog, milp
from scipy.special import expit, logsumexp, softmax
assert linprog([1.0], bounds=[(0, 1)]).status == 0
"""


def trim(folder: Path) -> None:
    """Remove the server's side, tests, what compilers read, and what of NumPy and SciPy nothing imports."""
    for name in (*SERVER_SIDE, *(f"scipy/{each}" for each in SCIPY_UNUSED)):
        shutil.rmtree(folder / name, ignore_errors=True)
    for tests in [path for path in folder.rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests, ignore_errors=True)
    for pattern in UNUSED:
        for file in list(folder.rglob(pattern)):
            file.unlink()


def main() -> int:
    """Trim the folder; the exit code of a process that imports all that the agent may."""
    folder = Path(sys.argv[1]).resolve()
    trim(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB")
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-S", "-c", LOADS], env=environment, cwd="/", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
