"""What the masks of one cohort cost, measured on the real ones: the server's processor time, and a plant's bytes."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from services.contracts.wire.masking import MaskedWords
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum
from tests.benchmarks.masking import frame_bytes, members


@dataclass(frozen=True)
class MaskCost:
    """Of a cohort and round at the server, of a plant and round, and bytes of a plant and round, both ways."""

    server_seconds: float
    plant_seconds: float
    bytes_up: int
    bytes_down: int


def mask_cost(plants: int, words: int, rounds: int = 3) -> MaskCost:
    """Medians over some rounds of a cohort of which all answer; the answers are read from JSON as they come."""
    cohort, there, _ = members(plants)
    drawn = np.random.default_rng(0).integers(0, 2**64, (plants, words), dtype=np.uint64)
    server, plant, up, down = list[float](), list[float](), 0, 0
    for number in range(rounds):
        began = time.process_time()
        prepared = {name: each.prepare(number) for name, each in there.items()}
        middle = time.process_time()
        asked = deliveries(cohort, number, prepared)
        passed = time.process_time()
        masked = {name: each.mask(asked[name], drawn[k]) for k, (name, each) in enumerate(there.items())}
        answered = time.process_time()
        came = {name: MaskedWords.model_validate_json(each.model_dump_json()) for name, each in masked.items()}
        request = unmask_request(cohort, number, prepared, came)
        requested = time.process_time()
        revealed = {name: each.reveal(request) for name, each in there.items()}
        told = time.process_time()
        total = unmasked_sum(cohort, request, prepared, came, revealed)
        ended = time.process_time()
        assert (total == np.add.reduce(list(drawn))).all()
        server.append((passed - middle) + (requested - answered) + (ended - told))
        plant.append(((middle - began) + (answered - passed) + (told - requested)) / plants)
        first = next(iter(there))
        up = frame_bytes(masked[first], revealed[first], prepared[first])
        down = len(asked[first].model_dump_json()) + len(request.model_dump_json())
    return MaskCost(statistics.median(server), statistics.median(plant), up, down)
