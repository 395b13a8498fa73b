"""By what a plant says that nothing changed since an earlier run: a keyed digest of the risk that it answers about.

HMAC-SHA256, under a secret that never leaves the vault, of the training rows and all terms of the plant's own problem.
Equal digests of two runs say that every cut of the one holds in the other. Without the secret nobody can try out which
rows give a digest, two plants with the same rows have different ones, and so has a plant after its secret was lost: its
cuts are then gathered anew. The release is in it too, so that what another release answers is held to nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from models.problem import SiteProblem

_PURPOSE = b"ballast: rows and terms of a run\x00"


def row_digest(secret: bytes, site_id: str, contract: str, problems: Sequence[SiteProblem]) -> str:
    """64 hexadecimal digits; ``contract`` is the asset type's fingerprint, ``problems`` are those of the heads."""
    told = hmac.new(secret, _PURPOSE, hashlib.sha256)
    for part in (_release(), site_id, contract):
        told.update(part.encode() + b"\x00")
    for problem in problems:
        told.update(problem.digest)
    return told.hexdigest()


@cache
def _release() -> str:
    try:
        return version("ballast-diagnosis")
    except PackageNotFoundError:
        return "source"
