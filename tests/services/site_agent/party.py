"""A cohort at a plant's door: the plant that is tested, and three that are played, whose words are all zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.methods.catalogue import get_method
from models.one_vs_rest import OneVsRestServer
from models.problem import ServerProblem, SiteTerms
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.masking import MaskedWords, MaskingCohort, MaskKey, MaskKeys, Preparation, Unmasking
from services.contracts.wire.messages import Kind, SiteUpdate
from services.masking.keys import MaskKeyPair
from services.masking.member import Member
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum

RUN = "ab" * 16
METHOD = "cohort-bundle"
PEERS = ("plant-2", "plant-3", "plant-4")


@dataclass
class Party:
    """A cohort of the plant at the door and three that are played here, whose words are all zero."""

    site: Any
    folder: Path
    shares: dict[str, float] = field(default_factory=dict)
    known_as: str = ""

    def __post_init__(self) -> None:
        seeds = {peer: self.folder / f"{peer}.nk" for peer in PEERS}
        keys = {peer: new_seed_file(seed) for peer, seed in seeds.items()}
        keys["plant-1"] = self.known_as or self.site.public_key
        self.cohort = MaskingCohort(run_id=RUN, name="cohort-1", keys=keys, threshold=3, shares=self.shares)
        self.pairs = {peer: MaskKeyPair.new() for peer in PEERS}
        self.keys = {
            peer: pair.signed(self.cohort, peer, signer(seeds[peer])) for peer, pair in self.pairs.items()
        }

    def ask(self, kind: Kind, masking: Any, **changes: Any) -> Any:
        known = {"run_id": RUN, "method": METHOD, "reveal": "sums", "masking": masking}
        return self.site.ask(kind, **(known | changes))

    def agree(self) -> None:
        self.keys["plant-1"] = self.ask("agree", self.cohort).masking
        assert isinstance(self.keys["plant-1"], MaskKey)
        self.members = {peer: Member(self.cohort, peer, pair, self.keys) for peer, pair in self.pairs.items()}

    def prepare(self, number: int) -> dict[str, Preparation]:
        said = {peer: member.prepare(number) for peer, member in self.members.items()}
        asked = MaskKeys(run_id=RUN, round=number, keys=self.keys)
        return said | {"plant-1": self.ask("prepare", asked, round=number).masking}

    def sum(self, kind: Kind, number: int, arrays: dict[str, FloatArray], count: int, **changes: Any) -> Any:
        """The plant's own words, which are the sum."""
        prepared = self.prepare(number)
        given = deliveries(self.cohort, number, prepared)
        answer = self.ask(kind, given["plant-1"], round=number, arrays=arrays, **changes)
        assert isinstance(answer, SiteUpdate) and not answer.arrays and isinstance(answer.masking, MaskedWords), answer
        masked = {peer: member.mask(given[peer], np.zeros(count, np.uint64)) for peer, member in self.members.items()}
        masked["plant-1"] = answer.masking
        self.request = unmask_request(self.cohort, number, prepared, masked)
        told = {peer: member.reveal(self.request) for peer, member in self.members.items()}
        asked = Unmasking(run_id=RUN, request=self.request, next_round=number + 1)
        told["plant-1"] = self.ask("unmask", asked, round=number).masking.revealed
        return unmasked_sum(self.cohort, self.request, prepared, masked, told)


def first_question(questions: int = 2, heads: int = 1) -> tuple[dict[str, FloatArray], dict[str, tuple[int, ...]]]:
    parameters = {"level": 0.2, "closeness": 100.0, "questions": float(questions)}
    problem = ServerProblem(
        n_features=3, sites=(SiteTerms("c", 1.0, 0.01, 1.0),), transport_norm="l2", fit_intercept=True, gap=1e-3,
        parameters=parameters,
    )
    server = OneVsRestServer(get_method(METHOD).server, heads)
    shapes = server.answer_shapes(problem.dimension, problem.n_swings, parameters)
    return server.messages(server.init(problem), problem)["c"], shapes
