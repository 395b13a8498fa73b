"""``-m "not server"`` leaves the tests that need no server, and ``make test`` leaves out the thorough ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.thorough import BEGINNINGS, is_thorough, named_in_vain

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


def test_only_the_whole_leaves_the_thorough_ones_out() -> None:
    def commands(*arguments: str) -> str:
        asked = ["make", "-n", *arguments]
        own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "ARGS"}
        said = subprocess.run(asked, cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout
        return said.splitlines()[-1]

    assert '-m "not thorough"' in commands("test")
    of_a_part = commands("test", "ARGS=tests/flows")
    assert "tests/flows" in of_a_part and "thorough" not in of_a_part
    assert commands("thorough").rstrip().endswith("-m thorough")
    assert "not server and not thorough" in commands("check")


def test_what_is_thorough_is_named_by_its_beginning_and_none_in_vain() -> None:
    first, *others = BEGINNINGS
    assert is_thorough(first) and is_thorough(f"{first}[case]") and not is_thorough(first.removesuffix("d"))
    assert named_in_vain([f"{first}[case]", *others]) == []
    assert named_in_vain(others) == [first]
