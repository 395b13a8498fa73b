"""What a run's training and evaluation leave: the version before the registry gives it a number."""

from __future__ import annotations

from dataclasses import dataclass

from models.basics import FloatArray
from services.contracts.versions.model_version import ModelVersion


@dataclass(frozen=True)
class VersionDraft:
    """All that the registration of a version needs beside the run's rounds; no plant is asked for more of it.

    ``version`` is signed and has no number yet. ``stopped``: why training ended, on one line. ``certificate``: the file
    that proves the version's bounds, None where there is none. ``counts`` (C, C): held-out rows of all plants together
    by true and diagnosed class, None where none were counted.
    """

    version: ModelVersion
    stopped: str
    certificate: bytes | None = None
    counts: FloatArray | None = None
