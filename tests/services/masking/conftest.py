"""Cohorts of plants with keys of their own, and a round of sums from preparation to sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.masking import MaskedWords, MaskingCohort, Preparation, Revealed, default_threshold
from services.masking.keys import MaskKeyPair, Words
from services.masking.member import Member
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum

RUN = "ab" * 16


class Plants:
    """Members of one run, and what the server keeps of each round."""

    def __init__(self, folder: Path, count: int, threshold: int | None = None, run_id: str = RUN) -> None:
        names = [f"plant-{k:03d}" for k in range(count)]
        keys = {name: new_seed_file(folder / run_id / f"{name}.seed") for name in names}
        self.signers = {name: signer(folder / run_id / f"{name}.seed") for name in names}
        wanted = default_threshold(count) if threshold is None else threshold
        self.cohort = MaskingCohort(run_id=run_id, name="cohort-1", keys=keys, threshold=wanted)
        self.pairs = {name: MaskKeyPair.new() for name in names}
        self.keys = {name: self.pairs[name].signed(self.cohort, name, self.signers[name]) for name in names}
        self.members = {name: Member(self.cohort, name, self.pairs[name], self.keys) for name in names}

    def words(self, seed: int, count: int = 5) -> dict[str, Words]:
        draw = np.random.default_rng(seed)
        return {name: draw.integers(0, 2**64, count, dtype=np.uint64) for name in self.members}

    def prepared(self, number: int, absent: Iterable[str] = ()) -> dict[str, Preparation]:
        return {name: each.prepare(number) for name, each in self.members.items() if name not in set(absent)}

    def masked(
        self, number: int, prepared: dict[str, Preparation], words: dict[str, Words], absent: Iterable[str] = ()
    ) -> dict[str, MaskedWords]:
        asked = deliveries(self.cohort, number, prepared)
        return {name: self.members[name].mask(asked[name], words[name]) for name in asked if name not in set(absent)}

    def total(
        self, number: int, words: dict[str, Words], *, never: Iterable[str] = (), dropped: Iterable[str] = (),
        silent: Iterable[str] = (),
    ) -> Words:
        """Sum of a round: ``never`` prepared, ``dropped`` before they answered, ``silent`` when asked for shares."""
        prepared = self.prepared(number, never)
        masked = self.masked(number, prepared, words, dropped)
        request = unmask_request(self.cohort, number, prepared, masked)
        revealed: dict[str, Revealed] = {
            name: self.members[name].reveal(request) for name in request.answered if name not in set(silent)
        }
        return unmasked_sum(self.cohort, request, prepared, masked, revealed)


@pytest.fixture
def make_plants(tmp_path: Path) -> Callable[..., Plants]:
    """Make a cohort of so many plants."""

    def make(count: int, threshold: int | None = None, run_id: str = RUN) -> Plants:
        return Plants(tmp_path, count, threshold, run_id)

    return make


@pytest.fixture(scope="session")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Plants:
    """Seven plants, of which five must answer, for rounds that others do not use."""
    return Plants(tmp_path_factory.mktemp("seven"), 7)
