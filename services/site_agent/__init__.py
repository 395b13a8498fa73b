"""The plant's side: reads the vault, answers tasks, and keeps a ledger of all that leaves.

Its arrays are small, and threads of the BLAS get in one another's way: where the environment says nothing there is one.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before anything here loads numpy
    os.environ.setdefault(_variable, "1")
