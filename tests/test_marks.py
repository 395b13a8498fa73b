"""``-m "not server"`` leaves the tests that need no server, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUICK = ("tests/services/coordinator/run_state/test_sample_counts.py", "tests/api/backend/test_addresses.py")
"""With a works in memory, and with a parameter that is called as a server's fixture."""
SLOW = ("tests/flows/test_weekly.py", "tests/journeys/test_tuning_alone.py")


def test_a_works_in_memory_needs_no_server_and_one_of_servers_does() -> None:
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-m", "not server"]
    command = [sys.executable, "-m", "pytest", *options, *QUICK, *SLOW]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    left = {line.partition("::")[0] for line in said.stdout.splitlines() if "::" in line}
    assert left == set(QUICK), said.stderr
    assert "test_a_million_rows_are_not_believed" in said.stdout and "test_the_hosts_own_processes" in said.stdout
