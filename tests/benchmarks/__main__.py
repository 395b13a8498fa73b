"""All measurements of the service, one after another: ``python -m tests.benchmarks [--out DIR] [NAME ...]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NAMES = (
    "overhead", "predictor", "api", "console", "simulator", "rounds", "worst_case", "prox", "drfl", "masking",
    "verification", "noise", "splines", "conformal", "server_step", "accuracy", "scale",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run each in a process of its own, single-threaded; 1 when one missed its target or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--out", type=Path, help="folder for the JSON files")
    wanted = parser.parse_args(arguments)
    unknown = sorted(set(wanted.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if wanted.out:
        wanted.out.mkdir(parents=True, exist_ok=True)
    missed = []
    for name in wanted.names or NAMES:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.{name}"]
        if wanted.out:
            command += ["--json", str(wanted.out / f"{name}.json")]
        if subprocess.run(command, check=False).returncode != 0:
            missed.append(name)
    if missed:
        print(f"\nmissed its target or failed: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
