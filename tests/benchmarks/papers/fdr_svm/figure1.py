"""Figure 1: mean correct classification rate against the global hyperparameters, rounds T and gamma or rho.

``python -m tests.benchmarks.papers.fdr_svm.figure1 [--quick] [--repetitions N] [--json FILE] [--out DIR]``

Full: 50 repetitions, or N; quick: 1, and every other value of gamma and rho.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
from tests.benchmarks.papers.fdr_svm.sensitivity import run_figure


def main() -> int:
    """Run, resume, write."""
    args = command.figure_parser(__doc__, "figure1").parse_args()
    return run_figure(args, "figure1", {"rounds": "rounds T", "knob": "gamma (SM) or rho (ADMM)"})


if __name__ == "__main__":
    raise SystemExit(main())
