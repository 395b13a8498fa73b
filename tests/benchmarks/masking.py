"""What masks cost: ``python -m tests.benchmarks.masking [--plants 200] [--numbers 101] [--json FILE]``.

One cohort, one process. For one plant: agreeing on keys, once in a run, and then in each round preparing, masking and
revealing; for the server: passing the boxes on and taking the masks off, with nobody and with a tenth absent. Times are
those of the processor.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from services.contracts.keys.signing import new_seed_file, signer  # noqa: E402
from services.contracts.wire.codec import encode  # noqa: E402
from services.contracts.wire.masking import (  # noqa: E402
    MaskedWords,
    MaskingCohort,
    Preparation,
    Revealed,
    Unmasked,
    default_threshold,
)
from services.contracts.wire.messages import SiteUpdate  # noqa: E402
from services.masking.keys import MaskKeyPair  # noqa: E402
from services.masking.member import Member  # noqa: E402
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum  # noqa: E402
from tests.benchmarks.command import at_least, output_file  # noqa: E402

TARGET_MS = 15.0
"""What a plant may spend on masks in a round."""
ROUNDS = 5


def members(plants: int) -> tuple[MaskingCohort, dict[str, Member], float]:
    """A cohort, its plants, and the median milliseconds in which a plant agreed on its keys."""
    names = [f"plant-{k}" for k in range(plants)]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in names}
        keys = {name: new_seed_file(file) for name, file in files.items()}
        cohort = MaskingCohort(run_id="0" * 32, name="all", keys=keys, threshold=default_threshold(plants))
        pairs = {name: MaskKeyPair.new() for name in names}
        public = {name: pairs[name].signed(cohort, name, signer(files[name])) for name in names}
    seconds: list[float] = []
    found = {name: timed(seconds, Member, cohort, name, pairs[name], public) for name in names}
    return cohort, found, 1e3 * statistics.median(seconds)


def frame_bytes(masked: MaskedWords, revealed: Revealed, prepared: Preparation) -> int:
    """Bytes of both frames of a plant and round: the words, then the shares with what the next round needs."""
    at = {"site_id": masked.site_id, "run_id": masked.run_id, "round": masked.round, "task_sha256": "0" * 64}
    told = Unmasked(run_id=masked.run_id, revealed=revealed, preparation=prepared)
    answers = SiteUpdate(**at, kind="round", masking=masked), SiteUpdate(**at, kind="unmask", masking=told)
    return sum(len(encode(each, lambda _: bytes(64), reads_compact=True)) for each in answers)


def timed(seconds: list[float], call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns; its seconds are added to the list."""
    began = time.process_time()
    result = call(*arguments)
    seconds.append(time.process_time() - began)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, write its rows where asked; 1 when a plant took longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--plants", type=at_least(3), default=200)
    parser.add_argument("--numbers", type=at_least(), default=101)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    options = parser.parse_args(arguments)
    cohort, plants, agreeing = members(options.plants)
    words = np.random.default_rng(0).integers(0, 2**64, (options.plants, options.numbers), dtype=np.uint64)
    spent: dict[str, list[float]] = {name: [] for name in ("prepare", "mask", "reveal", "pass on", "unmask", "a tenth")}
    size = 0
    for number in range(ROUNDS):
        prepared = {name: timed(spent["prepare"], each.prepare, number) for name, each in plants.items()}
        asked = timed(spent["pass on"], deliveries, cohort, number, prepared)
        masked = {
            name: timed(spent["mask"], each.mask, asked[name], words[k])
            for k, (name, each) in enumerate(plants.items())
        }
        odd = number % 2
        here = {name: each for k, (name, each) in enumerate(masked.items()) if not odd or k % 10}
        request = unmask_request(cohort, number, prepared, here)
        revealed = {name: timed(spent["reveal"], plants[name].reveal, request) for name in here}
        took = spent["a tenth" if odd else "unmask"]
        total = timed(took, unmasked_sum, cohort, request, prepared, here, revealed)
        assert (total == np.add.reduce([words[k] for k, name in enumerate(plants) if name in here])).all()
        first = next(iter(here))
        size = frame_bytes(masked[first], revealed[first], prepared[first])
    medians = {name: 1e3 * statistics.median(each) for name, each in spent.items()}
    plant = medians["prepare"] + medians["mask"] + medians["reveal"]
    print(f"{options.plants} plants in one cohort, {options.numbers} numbers, {cohort.threshold} must answer; medians")
    print(f"a plant, once in a run: {agreeing:.1f} ms")
    parts = ", ".join(f"{name} {medians[name]:.1f}" for name in ("prepare", "mask", "reveal"))
    print(f"a plant and round: {plant:.1f} ms ({parts}), at most {TARGET_MS:g} wanted: "
          f"{'met' if plant <= TARGET_MS else 'MISSED'}; {size / 1e3:.0f} kB of frames")
    server = medians["pass on"] + medians["unmask"]
    print(f"the server and round: {server:.0f} ms, with a tenth absent {medians['a tenth']:.0f} ms")
    if options.json is not None:
        rows = {"plants": options.plants, "numbers": options.numbers, "agree_ms": agreeing, "plant_ms": plant,
                "bytes": size, **medians}
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(plant > TARGET_MS)


if __name__ == "__main__":
    raise SystemExit(main())
