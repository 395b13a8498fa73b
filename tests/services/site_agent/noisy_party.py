"""The cohort of ``party`` with noise on its sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.cohorts.noise import METHOD
from services.contracts.keys.signing import signer
from services.contracts.problems.noise import CohortNoise
from services.contracts.wire.masking import MaskingCohort
from services.contracts.wire.messages import Kind
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.version_exposure import data_digest
from tests.services.site_agent.party import RUN, Party

POINT = {"point": np.array([[0.5, -0.2, 0.1, 0.05]])}


class NoisyParty(Party):
    """The same cohort with noise: a mask is asked for, and sums are the plant's own words."""

    noise = CohortNoise(row_share=0.05, honest=2, rho=0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.renew(1)

    def renew(self, agreement: int, noise: CohortNoise | None = noise) -> None:
        whole = self.cohort.model_dump() | {"agreement": agreement, "noise": noise}
        self.cohort = MaskingCohort.model_validate(whole)
        self.keys = {
            peer: pair.signed(self.cohort, peer, signer(self.folder / f"{peer}.nk"))
            for peer, pair in self.pairs.items()
        }

    def ask(self, kind: Kind, masking: Any, **changes: Any) -> Any:
        return self.site.ask(kind, run_id=RUN, reveal="sums", masking=masking, **({"method": METHOD} | changes))

    def digest(self) -> str:
        return data_digest(Vault(self.site.source, self.site.asset_type).current().train)

    def told(self) -> float:
        return self.site.door._noise_record.account(self.digest()).rho


def words(party: NoisyParty, number: int) -> Any:
    return party.sum("round", number, POINT, 6).view(np.int64)
