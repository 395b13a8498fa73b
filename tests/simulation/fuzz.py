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
from functools import lru_cache

import nkeys
import numpy as np

from services.contracts.codec import FrameError, digest, encode, unpack
from services.contracts.messages import Hello, SiteRefusal, SiteUpdate, Task
from services.coordinator.admission import AdmissionError, Expected, admit

RUN = "5" * 32
SHAPES = {"risk": (1,), "slope": (1, 3)}
NUMBERS = (0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 1e308, True, None, "", [], {}, "x" * 300, [[[[1]]]])


class _Key:
    def __init__(self, byte: int) -> None:
        self._pair = nkeys.from_seed(bytearray(nkeys.encode_seed(bytes([byte]) * 32, nkeys.PREFIX_BYTE_USER)))
        self.public = self._pair.public_key.decode()

    def sign(self, data: bytes) -> bytes:
        return bytes(self._pair.sign(data))


@lru_cache(maxsize=1)
def corpus() -> tuple[tuple[bytes, ...], Expected]:
    """Valid frames, the honest answer first, and what the coordinator waits for."""
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
    frames = (
        encode(update, key.sign), encode(refusal, key.sign), encode(earlier, key.sign), encode(update, other.sign),
        encode(update), encode(Hello(site_id="plant-1", version="1"), key.sign), asked,
    )
    expected = Expected("round", "plant-1", RUN, 3, digest(asked), key.public, SHAPES)
    return frames, expected


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
    frames, expected = corpus()
    draw, found = random.Random(f"{seed}/fuzz"), Counter[str]()
    signed, key = {frames[0], frames[1]}, _Key(1)
    for _ in range(inputs):
        data = draw.randbytes(draw.randrange(400)) if draw.random() < 0.05 else changed(draw, frames)
        own = draw.random() < 0.3 and len(data) > 64
        if own:
            data = data[:-64] + key.sign(data[:-64])
        try:
            unpack(data).message()
            found["read"] += 1
        except FrameError:
            found["no frame"] += 1
        try:
            said = admit(data, expected)
        except AdmissionError as error:
            found[f"refused: {error.code}"] += 1
        else:
            assert own or data in signed, f"admitted, and not signed: {data!r}"
            at = (said.site_id, said.run_id, said.round, said.kind, said.task_sha256)
            assert at == ("plant-1", RUN, 3, "round", expected.task_sha256), f"admitted for {at}: {data!r}"
            if isinstance(said, SiteUpdate):
                assert {name: array.shape for name, array in said.arrays.items()} == SHAPES, f"admitted: {data!r}"
                assert all(np.isfinite(array).all() for array in said.arrays.values()), f"admitted: {data!r}"
            found["admitted: signed by the site, " + ("changed by it" if data not in signed else "as it was")] += 1
    return found


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
