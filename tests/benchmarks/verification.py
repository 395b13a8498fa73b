"""Time to prove a version's bounds again: ``python -m tests.benchmarks.verification [--json FILE]``.

Each row: sites, features, cuts in the file, its kB, and milliseconds to read and prove it (median).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence

from services.verification.certificate_file import read_certificate, write_certificate
from services.verification.proof import verify
from tests.benchmarks.command import output_file
from tests.services.verification.drawn import trained_certificate

CASES = ((4, 10, False), (4, 10, True), (12, 20, False))
REPEATS = 20


def measured(n_sites: int, n_features: int, box: bool) -> dict[str, float]:
    """One row of the table."""
    certificate = trained_certificate(n_sites=n_sites, n_features=n_features, n_rows=120, box=box)
    data, seconds = write_certificate(certificate), list[float]()
    for _ in range(REPEATS):
        started = time.perf_counter()
        verify(read_certificate(data))
        seconds.append(time.perf_counter() - started)
    return {
        "sites": n_sites, "features": n_features, "box": float(box), "cuts": certificate.heads[0].site.size,
        "kB": len(data) / 1000, "milliseconds": 1000 * statistics.median(seconds),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=output_file)
    chosen = parser.parse_args(arguments)
    rows = [measured(*case) for case in CASES]
    for row in rows:
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
