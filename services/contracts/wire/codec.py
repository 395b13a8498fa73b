"""The wire codec: a length-prefixed JSON header, then the raw arrays, then an optional Ed25519 signature.

Layout of a frame: ``BLS1``, header length (uint32 little-endian), header (UTF-8 JSON with sorted keys; ``arrays`` lists
name and shape in the order of the data), the arrays as little-endian float64 in C order, and 64 bytes of signature over
all that stands before when the header says ``"signed": true``. Numbers that depend on data travel as arrays, so a
frame's size depends on shapes alone.

Frames of a second form, ``BLS2`` (``services.contracts.wire.compact``), hold the answers of a round in fewer bytes. Who
asks says in the header :data:`READS` of the NATS message that it reads them, and which newer words of a join; agents of
before do not look at it, and who was not told so answers in the first form, without these words.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from models.basics import FloatArray
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import verify
from services.contracts.plain_words import plain
from services.contracts.reading import explain
from services.contracts.wire import compact
from services.contracts.wire.compact import MAX_DIMENSIONS, SIGNATURE_BYTES
from services.contracts.wire.messages import Hello, Message, SiteRefusal, SiteUpdate, Task

MAGIC = b"BLS1"
READS = "Ballast-Reads"
"""Header of a task's NATS message, beside the frame: what may answer it that a coordinator of before does not read."""
COMPACT, OWN_SCORES = compact.MAGIC.decode(), "own-scores"
"""Words of that header: compact frames; a join that tells whether the site's own scores are for asking."""
_ADAPTER: TypeAdapter[Message] = TypeAdapter(
    Annotated[Task | SiteUpdate | SiteRefusal | Hello, Field(discriminator="type")]
)
LONGEST_REASON = 500  # characters; it stands in logs and in a refusal
Signer = Callable[[bytes], bytes]


class FrameError(InvalidInputError):
    """Bytes that are not a valid frame."""

    code = "bad_frame"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(plain(message, LONGEST_REASON), code=code)  # it may quote what stands in the bytes


@dataclass(frozen=True)
class Frame:
    """A frame taken apart: header, arrays, the bytes that a signature covers, and the signature (None: unsigned)."""

    header: Mapping[str, Any]
    arrays: Mapping[str, FloatArray]
    signed: bytes
    signature: bytes | None

    def is_signed_by(self, public_key: str) -> bool:
        """Whether the holder of an nkey signed the frame."""
        return self.signature is not None and verify(public_key, self.signed, self.signature)

    def message(self) -> Message:
        """The message in the frame; raise :class:`FrameError` when it is not of a known type."""
        fields = {**self.header, "arrays": dict(self.arrays)} if self.arrays else dict(self.header)
        try:
            return _ADAPTER.validate_python(fields)
        except ValidationError as error:
            raise FrameError(f"message does not fit its type: {explain(error)}") from None


def digest(data: bytes) -> str:
    """SHA-256 of a frame or a file, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def pack_arrays(header: Mapping[str, Any], arrays: Mapping[str, FloatArray], sign: Signer | None = None) -> bytes:
    """Frame of a JSON header and named float64 arrays."""
    full = dict(header)
    full["arrays"] = [[name, list(np.shape(array))] for name, array in arrays.items()]
    full["signed"] = sign is not None
    text = json.dumps(full, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays.values())
    unsigned = MAGIC + struct.pack("<I", len(text)) + text + body
    return unsigned + sign(unsigned) if sign else unsigned


def unpack(frame: bytes, max_bytes: int | None = None) -> Frame:
    """Take a frame apart; raise :class:`FrameError` when it is longer than ``max_bytes``, where given, or cut."""
    if max_bytes is not None and len(frame) > max_bytes:
        raise FrameError(f"message of {len(frame)} bytes is over the limit of {max_bytes}", code="too_large")
    if frame[:4] == compact.MAGIC:
        return _unpack_compact(frame)
    if len(frame) < 8 or frame[:4] != MAGIC:
        raise FrameError("not a Ballast frame: the first four bytes must be BLS1 or BLS2")
    (length,) = struct.unpack("<I", frame[4:8])
    start = 8 + length
    if start > len(frame):
        raise FrameError("frame is cut short in its header")
    try:
        header = json.loads(frame[8:start])
        specs = [(str(name), tuple(int(n) for n in shape)) for name, shape in header.pop("arrays")]
        signed = bool(header.pop("signed"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise FrameError("frame header is not the JSON that it should be") from None
    if any(len(shape) > MAX_DIMENSIONS or any(n < 0 for n in shape) for _, shape in specs):
        raise FrameError(f"array shapes must have at most {MAX_DIMENSIONS} dimensions, none negative")
    if len({name for name, _ in specs}) != len(specs):
        raise FrameError("an array is named twice")
    wanted = start + sum(8 * math.prod(shape) for _, shape in specs) + (SIGNATURE_BYTES if signed else 0)
    if wanted != len(frame):
        raise FrameError(f"frame has {len(frame)} bytes, its header promises {wanted}")
    arrays: dict[str, FloatArray] = {}
    for name, shape in specs:
        end = start + 8 * math.prod(shape)
        numbers = np.frombuffer(frame[start:end], dtype="<f8").astype(np.float64)
        try:  # an array of no number may have sides that no memory holds
            arrays[name] = numbers.reshape(shape)
        except (ValueError, OverflowError):
            raise FrameError(f"an array cannot have the shape {shape}") from None
        start = end
    return Frame(header, arrays, frame[:start], frame[start:] if signed else None)


def _unpack_compact(frame: bytes) -> Frame:
    unsigned = frame[:-SIGNATURE_BYTES]
    try:
        header, arrays = compact.read_update(unsigned)
    except ValidationError as error:
        raise FrameError(f"message does not fit its type: {explain(error)}") from None
    except ValueError as error:
        raise FrameError(f"not a compact frame: {error}") from None
    return Frame(header, arrays, unsigned, frame[-SIGNATURE_BYTES:])


def read_by_asker(headers: Mapping[str, str] | None) -> frozenset[str]:
    """What who asks says in the headers of the message that it reads."""
    return frozenset((headers or {}).get(READS, "").split())


def encode(message: Message, sign: Signer | None = None, *, reads_compact: bool = False) -> bytes:
    """Frame of a message, signed where a signer is given; ``reads_compact``: in the compact form where it has one."""
    if reads_compact and sign and isinstance(message, SiteUpdate):
        unsigned = compact.pack_update(message)
        if unsigned is not None:
            return unsigned + sign(unsigned)
    arrays = {} if isinstance(message, SiteRefusal | Hello) else message.arrays
    # Plants and servers of an earlier version know none of these: what is not asked or told is not named.
    unsaid = {name for name in ("tuning", "drift", "exposed", "own_scores") if message.__dict__.get(name) is None}
    told = message.model_dump(mode="json", exclude={"arrays", *unsaid})
    spec = told.get("spec")
    if isinstance(spec, dict) and spec.get("network") is None:  # nor one of before networks
        spec.pop("network", None)
    return pack_arrays(told, arrays, sign)


def decode(frame: bytes, max_bytes: int) -> Message:
    """Message of a frame; raise :class:`FrameError` when it is too large, cut, or not of a known type."""
    return unpack(frame, max_bytes).message()
