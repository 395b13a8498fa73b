"""By what a plant says that nothing changed since an earlier run: a keyed digest of the risk that it answers about.

HMAC-SHA256, under a secret that never leaves the vault, of the training rows as they are and of all terms of the
plant's own problem, in words. Equal digests of two runs say that every cut of the one holds in the other. Without the
secret nobody can try out which rows give a digest, two plants with the same rows have different ones, and so has a
plant after its secret was lost: its cuts are then gathered anew. The release is in it too, so that what another release
answers is held to nothing.

The rows are not taken as a lift makes them, nor held to a support: under lifts and supports of the asker's choice,
equal digests of two problems, or that there is none, would say whether a row lies in a place.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from models.basics import FloatArray
from services.contracts.problems.training_spec import TrainingSpec

_PURPOSE = b"ballast: rows and terms of a run\x00"


def row_digest(
    secret: bytes, site_id: str, contract: str, spec: TrainingSpec, features: FloatArray, outcomes: FloatArray
) -> str:
    """64 hexadecimal digits of scaled features (N, P) and classes or targets (N,), whatever the problem asks of them.

    ``contract`` is the asset type's fingerprint; the radius of ``spec`` is the site's own.
    """
    told = hmac.new(secret, _PURPOSE, hashlib.sha256)
    for part in (_release(), site_id, contract, spec.model_dump_json()):
        told.update(part.encode() + b"\x00")
    for array in (features, outcomes):
        numbers = np.ascontiguousarray(array, dtype=np.float64)
        told.update(repr(numbers.shape).encode() + numbers.tobytes())
    return told.hexdigest()


@cache
def _release() -> str:
    try:
        return version("ballast-diagnosis")
    except PackageNotFoundError:
        return "source"
