"""The compact frame: the answers of a round, which are numbers and random bytes, without base 64 and JSON.

Layout, whole numbers little-endian: ``BLS2``; kind (1 byte, its place in :data:`KINDS`); round (4); run id (16);
SHA-256 of the task (32); site; what is answered; 64 bytes of Ed25519 signature over all that stands before. By kind:

- round, tune, evaluate: 0, 1 or 2 (1 byte). After 0 masked words, 8 bytes each, to the signature; after 1 a commitment,
  then masked words; after 2 arrays.
- prepare: a preparation.
- unmask: shares of self-masks, a map; shares of recovery keys, a map; 0 or 1, after 1 a preparation.

A site is the length (1) of its name, and the name. A map is the size of an item (2), the length of all names (4), the
names in ascending order with commas between, the items. A preparation is its round (4), two commitments (32 each), the
length of the recovery box (4) and the box, the sealed shares, a map. A commitment is cohort, question, words, masked
words, self-mask (32 each), pairs, a map, and a signature (64). Site, run and round of these are those of the frame.
Arrays are the length of a text (2), the text, as ``risk 1,slope 1 30`` names and shapes, and the numbers in this order,
float64. No other bytes stand for the same answer, and their number depends on the plants and shapes alone.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

import numpy as np

from models.basics import FloatArray
from services.contracts.wire.masking import Commitment, MaskedWords, MaskingAnswer, Preparation, Revealed, Unmasked
from services.contracts.wire.messages import ON_SUMS, Kind, SiteUpdate

MAGIC: Final = b"BLS2"
KINDS: Final[tuple[Kind, ...]] = ("round", "unmask", "prepare", "evaluate", "tune")
ON_DATA: Final[tuple[Kind, ...]] = ("round", "evaluate", "tune")
"""Those whose answers may be arrays."""
MAX_DIMENSIONS: Final = 4
"""No method's array has more."""
SIGNATURE_BYTES: Final = 64
"""Of Ed25519."""
_HEAD, _MAP, _NUMBER = struct.Struct("<BI16s32s"), struct.Struct("<HI"), struct.Struct("<I")
_ARRAYS = b"\2"
_Inside = MaskedWords | Commitment | Revealed | Preparation


def pack_update(update: SiteUpdate) -> bytes | None:
    """All of the frame but the signature; None where the update is none of those that have this form."""
    if update.kind not in KINDS or not _says_no_more(update):
        return None
    run, task = bytes.fromhex(update.run_id), bytes.fromhex(update.task_sha256)
    try:
        head = MAGIC + _HEAD.pack(KINDS.index(update.kind), update.round, run, task)
        said = _masking(update.masking) if update.masking is not None else _arrays(update.arrays)
        return head + bytes([len(update.site_id)]) + update.site_id.encode() + said
    except (ValueError, struct.error):  # items of several sizes, or a number that does not fit
        return None


def read_update(data: bytes) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Fields of the update in a frame without its signature, and its arrays; ``ValueError`` where it is no such one."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _HEAD.size:
        raise ValueError("it is cut short, or does not begin as one")
    code, number, run, task = _HEAD.unpack_from(data, len(MAGIC))
    if code >= len(KINDS):
        raise ValueError(f"it has no kind {code}")
    reader = _Reader(data, len(MAGIC) + _HEAD.size)
    site = reader.name()
    told = {
        "type": "update", "kind": KINDS[code], "round": number, "run_id": run.hex(), "task_sha256": task.hex(),
        "site_id": site,
    }
    if KINDS[code] in ON_DATA and data[reader.at : reader.at + 1] == _ARRAYS:
        reader.take(1)
        return told, _read_arrays(reader)
    masking = _read_masking(reader, KINDS[code], {"run_id": run.hex(), "site_id": site}, number)
    reader.end()
    return told | {"masking": masking}, {}


def _says_no_more(update: SiteUpdate) -> bool:
    """Whether it says arrays and no more, or what goes under masks and no more, of its own run, site and round."""
    said = update.masking
    if said is None and (update.kind not in ON_DATA or not update.arrays):
        return False
    if said is not None and (
        not isinstance(said, ON_SUMS[update.kind][1]) or said.run_id != update.run_id or update.arrays
    ):
        return False
    match said:
        case Unmasked():
            inside: tuple[_Inside | None, ...] = (said.revealed, said.preparation)
        case MaskedWords():
            inside = (said, said.commitment)
        case _:
            inside = (said,) if isinstance(said, Preparation) else ()
    return (
        (update.data_digest, update.drift, update.exposed, update.own_scores) == ("", None, None, None)
        and re.fullmatch("[0-9a-f]{64}", update.task_sha256) is not None
        and all((each.run_id, each.site_id) == (update.run_id, update.site_id) for each in inside if each is not None)
        and all(each.round == update.round for each in inside if isinstance(each, MaskedWords | Commitment | Revealed))
    )


def _arrays(arrays: Mapping[str, FloatArray]) -> bytes:
    text = ",".join(" ".join([name, *map(str, np.shape(array))]) for name, array in arrays.items()).encode("ascii")
    data = _ARRAYS + struct.pack("<H", len(text)) + text + b"".join(
        np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays.values()
    )
    if list(_specs(text)) != [(name, np.shape(array)) for name, array in arrays.items()]:
        raise ValueError("a name holds what stands between names")
    return data


def _read_arrays(reader: _Reader) -> dict[str, FloatArray]:
    (length,) = struct.unpack("<H", reader.take(2))
    specs, numbers = _specs(reader.take(length)), np.frombuffer(reader.rest(8), dtype="<f8")
    ends = list(accumulate(math.prod(shape) for _, shape in specs))
    if ends[-1] != numbers.size:
        raise ValueError(f"{numbers.size} numbers are there, and the shapes have {ends[-1]}")
    parts = np.split(numbers.astype(np.float64), ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(specs, parts, strict=True)}


def _specs(text: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes; ``ValueError`` where they are none, or a name stands twice."""
    specs = []
    for each in text.decode("ascii").split(","):
        name, *sizes = each.split(" ")
        if not re.fullmatch("[a-z0-9_]+", name) or len(sizes) > MAX_DIMENSIONS:
            raise ValueError("an array has a name and a shape")
        if any(not re.fullmatch("0|[1-9][0-9]{0,8}", size) for size in sizes):
            raise ValueError("a shape is of whole numbers")
        specs.append((name, tuple(map(int, sizes))))
    if len(dict(specs)) != len(specs):
        raise ValueError("an array is named twice")
    return specs


def _masking(said: MaskingAnswer | None) -> bytes:
    match said:
        case MaskedWords():
            if len(said.words) % 8:
                raise ValueError("words have 8 bytes each")
            return (b"\0" if said.commitment is None else b"\1" + _commitment(said.commitment)) + said.words
        case Preparation():
            return _preparation(said)
        case Unmasked():
            ready, shares = said.preparation, said.revealed
            return _map(shares.self_shares) + _map(shares.recovery_shares) + (
                b"\0" if ready is None else b"\1" + _preparation(ready)
            )
    raise ValueError("another kind of message")


def _read_masking(reader: _Reader, kind: Kind, of: Mapping[str, str], number: int) -> MaskingAnswer:
    match kind:
        case "prepare":
            return _read_preparation(reader, of)
        case "unmask":
            own, absent = reader.map(), reader.map()
            revealed = Revealed(**of, round=number, self_shares=own, recovery_shares=absent)
            ready = _read_preparation(reader, of) if reader.flag() else None
            return Unmasked(run_id=of["run_id"], revealed=revealed, preparation=ready)
    bound = _read_commitment(reader, of, number) if reader.flag() else None
    return MaskedWords(**of, round=number, words=reader.rest(8), commitment=bound)


def _preparation(said: Preparation) -> bytes:
    number, size = _NUMBER.pack(said.round), _NUMBER.pack(len(said.recovery))
    return number + b"".join(said.commitments) + size + said.recovery + _map(said.sealed)


def _read_preparation(reader: _Reader, of: Mapping[str, str]) -> Preparation:
    number, commitments = reader.number(), (reader.take(32), reader.take(32))
    recovery = reader.take(reader.number())
    return Preparation(**of, round=number, commitments=commitments, recovery=recovery, sealed=reader.map())


def _commitment(said: Commitment) -> bytes:
    digests = bytes.fromhex(said.cohort) + bytes.fromhex(said.question) + said.words + bytes.fromhex(said.masked)
    return digests + said.self_mask + _map(said.pairs) + said.signature


def _read_commitment(reader: _Reader, of: Mapping[str, str], number: int) -> Commitment:
    cohort, question, words, masked, self_mask = (reader.take(32) for _ in range(5))
    return Commitment(
        **of, round=number, cohort=cohort.hex(), question=question.hex(), words=words, masked=masked.hex(),
        self_mask=self_mask, pairs=reader.map(), signature=reader.take(SIGNATURE_BYTES),
    )


def _map(items: Mapping[str, bytes]) -> bytes:
    names = sorted(items)
    sizes = {len(item) for item in items.values()} or {0}
    if len(sizes) > 1:
        raise ValueError("items of a map have one size")
    text = ",".join(names).encode()
    return _MAP.pack(sizes.pop(), len(text)) + text + b"".join([items[name] for name in names])


class _Reader:
    """Takes bytes one part after the other; ``ValueError`` where there are fewer than were promised."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def take(self, count: int) -> bytes:
        """So many bytes. :class:`ValueError` where fewer are left."""
        start, self.at = self.at, self.at + count
        if self.at > len(self._data):
            raise ValueError("it is cut short")
        return self._data[start : self.at]

    def number(self) -> int:
        """A whole number of four bytes."""
        (found,) = _NUMBER.unpack(self.take(4))
        return int(found)

    def flag(self) -> bool:
        """Whether something follows: 0 or 1. :class:`ValueError` for another number."""
        found = self.take(1)[0]
        if found > 1:
            raise ValueError(f"{found} stands where 0 or 1 was due")
        return found == 1

    def name(self) -> str:
        """A name behind its length."""
        return self.take(self.take(1)[0]).decode("ascii")

    def map(self) -> dict[str, bytes]:
        """Items by name; the names ascend, so none stands twice. :class:`ValueError` where they do not."""
        size, length = _MAP.unpack(self.take(_MAP.size))
        names = self.take(length).decode("ascii").split(",") if length else []
        if names != sorted(set(names)) or (size and not names):
            raise ValueError("the names of a map do not ascend, or items of no name have a size")
        items = self.take(size * len(names))
        return {name: items[size * k : size * (k + 1)] for k, name in enumerate(names)}

    def rest(self, unit: int) -> bytes:
        """All that is left, in units of so many bytes. :class:`ValueError` where a part of a unit is left."""
        left = len(self._data) - self.at
        if left % unit:
            raise ValueError(f"{left} bytes are left, which are no words of {unit}")
        return self.take(left)

    def end(self) -> None:
        """Refuse what is left over. :class:`ValueError` says how much it is."""
        if self.at != len(self._data):
            raise ValueError(f"{len(self._data) - self.at} bytes are left over")
