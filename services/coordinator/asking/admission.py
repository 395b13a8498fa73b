"""Admission: what an answer must be before it may touch a model.

An answer is let in only if it is small enough, a whole frame, signed by the site's enrolled key, of the right site,
run, round and task, and holds exactly the arrays that the method expects, with numbers that can be true. Anything else
is refused with a reason, recorded, and never aggregated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import FrameError, unpack
from services.contracts.wire.compact import SIGNATURE_BYTES
from services.contracts.wire.masking import MaskingAnswer, Unmasked
from services.contracts.wire.messages import Kind, SiteRefusal, SiteUpdate

HEADER_ALLOWANCE = 4096  # bytes; an honest header with names and digests has under 1,000
LARGEST = 1e100
"""No honest number comes near; larger ones would overflow where they are multiplied."""


Doubt = Callable[[Mapping[str, FloatArray]], str]
"""Why the numbers of a well-formed answer cannot be true, on one line; empty where nothing speaks against them."""


def no_doubt(arrays: Mapping[str, FloatArray]) -> str:
    """Nothing speaks against it."""
    return ""


class AdmissionError(InvalidInputError):
    """An answer that may not be aggregated; ``code`` says which check it failed."""

    code = "not_admitted"


@dataclass(frozen=True)
class Expected:
    """What the coordinator waits for from one site: arrays, or what goes under masks (of the type ``masking``)."""

    kind: Kind
    site_id: str
    run_id: str
    round: int
    task_sha256: str
    public_key: str
    shapes: Mapping[str, tuple[int, ...]]
    doubt: Doubt = no_doubt
    masking: type[MaskingAnswer] | None = None
    masking_bytes: int = 0

    @property
    def max_bytes(self) -> int:
        """Largest frame that a valid answer can be."""
        arrays = sum(8 * math.prod(shape) for shape in self.shapes.values())
        return HEADER_ALLOWANCE + SIGNATURE_BYTES + arrays + self.masking_bytes


def admit(frame: bytes, expected: Expected) -> SiteUpdate | SiteRefusal:
    """Return the message if it may be used; raise :class:`AdmissionError` with the first check that it fails."""
    if len(frame) > expected.max_bytes:
        raise AdmissionError(
            f"answer has {len(frame)} bytes, at most {expected.max_bytes} fit this method", code="too_large"
        )
    try:
        parsed = unpack(frame)
        message = parsed.message()
    except FrameError as error:
        raise AdmissionError(str(error), code="bad_frame") from None
    if not parsed.is_signed_by(expected.public_key):
        raise AdmissionError("answer is not signed by the key that the site enrolled", code="bad_signature")
    if not isinstance(message, SiteUpdate | SiteRefusal):
        raise AdmissionError(f"an update or a refusal was due, got a {message.type}", code="bad_type")
    _check_address(message, expected)
    if isinstance(message, SiteUpdate):
        _check_masking(message, expected)
        _check_arrays(message, expected)
        if found := expected.doubt(message.arrays):
            raise AdmissionError(found, code="implausible")
    return message


def _check_address(message: SiteUpdate | SiteRefusal, expected: Expected) -> None:
    for name, found, wanted in (
        ("site", message.site_id, expected.site_id),
        ("run", message.run_id, expected.run_id),
        ("round", message.round, expected.round),
        ("kind", message.kind, expected.kind),
        ("task digest", message.task_sha256, expected.task_sha256),
    ):
        if found != wanted:
            raise AdmissionError(f"answer is for {name} {found}, {wanted} was asked", code="wrong_" + name.split()[0])


def _check_masking(update: SiteUpdate, expected: Expected) -> None:
    """What goes under masks must be of the type, the site and the run that was asked."""
    found, wanted = update.masking, expected.masking
    if wanted is None and found is None:
        return
    if wanted is None or not isinstance(found, wanted):
        due = "arrays were" if wanted is None else f"a {wanted.__name__} was"
        got = "arrays" if found is None else f"a {type(found).__name__}"
        raise AdmissionError(f"{due} due, got {got}", code="wrong_fields")
    parts = (found.revealed, found.preparation or found.revealed) if isinstance(found, Unmasked) else (found,)
    if any((part.site_id, part.run_id) != (expected.site_id, expected.run_id) for part in parts):
        raise AdmissionError("the masks are of another site or run than the answer", code="wrong_site")
    # What is prepared beside shares is for the round after.
    if getattr(parts[0], "round", expected.round) != expected.round:
        raise AdmissionError("the masks are of another round than the answer", code="wrong_round")


def _check_arrays(update: SiteUpdate, expected: Expected) -> None:
    if set(update.arrays) != set(expected.shapes):
        raise AdmissionError(
            f"answer holds the arrays {sorted(update.arrays)}, {sorted(expected.shapes)} were due", code="wrong_fields"
        )
    for name, array in update.arrays.items():
        if array.shape != tuple(expected.shapes[name]):
            raise AdmissionError(
                f"array {name} has shape {array.shape}, {tuple(expected.shapes[name])} was due", code="wrong_dimension"
            )
        if not (np.abs(array) <= LARGEST).all():
            if not np.isfinite(array).all():
                raise AdmissionError(f"array {name} holds a value that is not finite", code="not_finite")
            raise AdmissionError(f"array {name} holds a value above {LARGEST:g}", code="implausible")
