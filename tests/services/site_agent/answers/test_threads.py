"""The agent that a plant starts by hand has one thread of the BLAS, unless the environment says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PROGRAM = (
    "import os, services.site_agent.cli, numpy, threadpoolctl\n"
    "threads = [each['num_threads'] for each in threadpoolctl.threadpool_info() if each['user_api'] == 'blas']\n"
    "print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OMP_NUM_THREADS'], max(threads))"
)


def said(more: dict[str, str]) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=kept | more, capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_one_thread_unless_said_otherwise() -> None:
    pytest.importorskip("threadpoolctl")
    assert said({}) == ["1", "1", "1"]
    assert said(dict.fromkeys(VARIABLES, "2"))[:2] == ["2", "2"]
