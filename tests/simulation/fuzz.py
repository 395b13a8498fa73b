"""Frames that no honest party sent: ``python -m tests.simulation.fuzz --inputs N [--seed S]``.

Valid frames of every kind are changed (bits, bytes, cuts, insertions, numbers in the header, parts of other frames) or
made of chance alone; some the false site signs itself. Whatever comes, the codec and the admission answer with their
own errors; what is admitted is a frame that its site signed, byte for byte, and is an answer to what was asked.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import nkeys
import numpy as np

from services.contracts.wire.codec import FrameError, digest, encode, unpack
from services.contracts.wire.compact import MAGIC
from services.contracts.wire.masking import Commitment, MaskedWords, Preparation, Revealed, Unmasked
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate, Task
from services.coordinator.asking.admission import AdmissionError, Expected, admit

RUN = "5" * 32
SHAPES = {"risk": (1,), "slope": (1, 3)}
NUMBERS = (0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 1e308, True, None, "", [], {}, "x" * 300, [[[[1]]]])


class _Key:
    def __init__(self, byte: int) -> None:
        self._pair = nkeys.from_seed(bytearray(nkeys.encode_seed(bytes([byte]) * 32, nkeys.PREFIX_BYTE_USER)))
        self.public = self._pair.public_key.decode()

    def sign(self, data: bytes) -> bytes:
        return bytes(self._pair.sign(data))


@dataclass(frozen=True)
class Case:
    """A task: frames that answer it, frames that do not, and what the coordinator waits for."""

    answers: tuple[bytes, ...]
    others: tuple[bytes, ...]
    expected: Expected

    @property
    def frames(self) -> tuple[bytes, ...]:
        """All of them."""
        return self.answers + self.others


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """A round of single answers; of a round on sums, the masked words and what takes masks off."""
    return _single_answer(), _on_sums("round"), _on_sums("unmask")


def _single_answer() -> Case:
    key, other = _Key(1), _Key(2)
    task = Task(
        kind="round", site_id="plant-1", run_id=RUN, round=3, method="level-bundle", asset_type="rig",
        contract="0" * 64, spec={}, parameters={}, arrays={"point": np.arange(3.0).reshape(1, 3)}, reveal="each site",
    )
    asked = encode(task)
    said = {"kind": "round", "site_id": "plant-1", "run_id": RUN, "round": 3, "task_sha256": digest(asked)}
    arrays = {"risk": np.array([0.5]), "slope": np.array([[0.25, -0.5, 1.0]])}
    update = SiteUpdate(**said, arrays=arrays)
    refusal = SiteRefusal(**said, code="no_data", reason="the site has no data at present")
    earlier = SiteUpdate(**{**said, "round": 2}, arrays=arrays)
    others = (
        encode(earlier, key.sign), encode(update, other.sign), encode(update),
        encode(Hello(site_id="plant-1", version="1"), key.sign), asked,
    )
    expected = Expected("round", "plant-1", RUN, 3, digest(asked), key.public, SHAPES)
    answers = (encode(update, key.sign), encode(update, key.sign, reads_compact=True), encode(refusal, key.sign))
    return Case(answers, others, expected)


def _on_sums(kind: Literal["round", "unmask"]) -> Case:
    """Compact frames, and whole ones, of masked words or of what takes masks off."""
    key, other = _Key(1), _Key(2)
    task_sha256, at = digest(kind.encode()), {"run_id": RUN, "site_id": "plant-1", "round": 3}
    peers = {f"plant-{number}": bytes([number]) * 34 for number in (2, 3)}
    ready = Preparation(
        **(at | {"round": 4}), sealed={site: 3 * share for site, share in peers.items()}, recovery=b"r" * 136,
        commitments=(b"s" * 32, b"t" * 32),
    )
    revealed = Revealed(**at, self_shares={"plant-1": b"1" * 34, "plant-2": b"2" * 34}, recovery_shares={})
    bound = Commitment(
        **at, cohort="c" * 64, question="d" * 64, words=b"w" * 32, masked="e" * 64, self_mask=b"m" * 32,
        pairs={"plant-2": b"p" * 32}, signature=b"z" * 64,
    )
    masked = (MaskedWords(**at, words=bytes(range(64))), MaskedWords(**at, words=bytes(64), commitment=bound))
    shares = (Unmasked(run_id=RUN, revealed=revealed, preparation=ready), Unmasked(run_id=RUN, revealed=revealed))
    said = {**at, "kind": kind, "task_sha256": task_sha256}
    one, more = (SiteUpdate(**said, masking=each) for each in (masked if kind == "round" else shares))
    refusal = SiteRefusal(**said, code="masks_refused", reason="the masks were neither made nor taken off")
    answers = (
        encode(one, key.sign, reads_compact=True), encode(more, key.sign, reads_compact=True), encode(one, key.sign),
        encode(refusal, key.sign),
    )
    masking = MaskedWords if kind == "round" else Unmasked
    expected = Expected(kind, "plant-1", RUN, 3, task_sha256, key.public, {}, masking=masking, masking_bytes=2000)
    return Case(answers, (encode(one, other.sign, reads_compact=True), encode(one)), expected)


def changed(draw: random.Random, frames: Sequence[bytes]) -> bytes:
    """A frame that may be anything."""
    data = bytearray(draw.choice(frames))
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(data)) if data else 0
        match draw.randrange(9):
            case 0 if data:
                data[at] ^= 1 << draw.randrange(8)
            case 1 if data:
                data[at] = draw.choice((0, 255, 0x7F, 0x80, draw.randrange(256)))
            case 2:
                del data[at:]
            case 3:
                data[at:at] = draw.randbytes(draw.choice((1, 8, 64, 500)))
            case 4:
                del data[at : at + draw.choice((1, 8, 64))]
            case 5:
                other = draw.choice(frames)
                data[at:] = other[draw.randrange(len(other)) :]
            case 6 if len(data) >= 8:
                data[4:8] = struct.pack("<I", draw.choice((0, 1, len(data), 2**31, 2**32 - 1, draw.randrange(2**16))))
            case 7:
                data = bytearray(_other_header(draw, bytes(data)))
            case _:
                data += draw.randbytes(draw.choice((1, 64)))
    return bytes(data)


def _other_header(draw: random.Random, data: bytes) -> bytes:
    """The frame with another number or word in its header."""
    try:
        (length,) = struct.unpack("<I", data[4:8])
        header = json.loads(data[8 : 8 + length])
        name = draw.choice(sorted(header))
        header[name] = draw.choice(NUMBERS)
        if draw.random() < 0.3:
            header["arrays"] = [[draw.choice(("risk", "slope", "", 1)), [draw.choice(NUMBERS)]]]
        text = json.dumps(header).encode()
    except (struct.error, ValueError, TypeError, IndexError, AttributeError):
        return data
    return data[:4] + struct.pack("<I", len(text)) + text + data[8 + length :]


def fuzz(inputs: int, seed: int = 0) -> Counter[str]:
    """Put so many frames in; :class:`AssertionError` where one does what it must not. Counts by what came of them."""
    draw, found, key = random.Random(f"{seed}/fuzz"), Counter[str](), _Key(1)
    for _ in range(inputs):
        case = draw.choice(cases())
        data = draw.randbytes(draw.randrange(400)) if draw.random() < 0.05 else changed(draw, case.frames)
        own = draw.random() < 0.3 and len(data) > 64
        if own:
            data = data[:-64] + key.sign(data[:-64])
        try:
            unpack(data).message()
            found["read"] += 1
        except FrameError:
            found["no frame"] += 1
        try:
            said = admit(data, case.expected)
        except AdmissionError as error:
            found[f"refused: {error.code}"] += 1
        else:
            assert own or data in case.answers, f"admitted, and not signed: {data!r}"
            _check_admitted(said, data, case.expected)
            form = data[:4].decode() + (", changed by it" if data not in case.answers else ", as it was")
            found[f"admitted: signed by the site, {form}"] += 1
    return found


def _check_admitted(said: SiteUpdate | SiteRefusal, data: bytes, expected: Expected) -> None:
    """What is admitted is to the task, and holds what was due."""
    at = (said.site_id, said.run_id, said.round, said.kind, said.task_sha256)
    assert at == ("plant-1", RUN, 3, expected.kind, expected.task_sha256), f"admitted for {at}: {data!r}"
    if isinstance(said, SiteRefusal):
        return
    assert {name: array.shape for name, array in said.arrays.items()} == expected.shapes, f"admitted: {data!r}"
    assert all(np.isfinite(array).all() for array in said.arrays.values()), f"admitted: {data!r}"
    if expected.masking is None:
        assert said.masking is None, f"admitted: {data!r}"
    else:
        assert isinstance(said.masking, expected.masking), f"admitted: {data!r}"
    if data.startswith(MAGIC):
        assert encode(said, lambda _: data[-64:], reads_compact=True) == data, f"two frames for one answer: {data!r}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many (1000000)")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn from (0)")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    found = fuzz(chosen.inputs, chosen.seed)
    print("\n".join(f"{count:10} {what}" for what, count in found.most_common()))
    print(f"{chosen.inputs} inputs in {time.monotonic() - began:.0f} s: no crash, nothing changed was admitted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
