"""The fast solvers load nothing of the reference."""

from __future__ import annotations

import subprocess
import sys


def test_the_fast_solvers_load_no_reference():
    code = (
        "import sys, numpy as np; from models.problem import *; from models.prox.hinge import robust_prox; "
        "robust_prox(SiteProblem(np.ones((3, 2)), np.ones(3), RobustSpec(0.1, 1.0)), np.zeros(3), 1.0); "
        "assert not {'cvxpy', 'clarabel', 'models.reference'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
