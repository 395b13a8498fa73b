"""Sites that tell, point after point, what another site tells: one copies the other, or both hold the same rows.

Such answers contradict nothing, and nobody can tell from them who copies whom: the two are asked at points of their own
(``asked_apart``). Where neither contradicts itself then, both hold the same rows, and what they say is said once: one
of the two is left out. A digest of the run chooses, not the sites: to hold a site's rows is no way to oust it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.evidence import Evidence
from services.contracts.history.run import SiteAnswer
from services.coordinator.asking.poll import Poll
from services.coordinator.run_state.training_state import Training

LEAST_ALIKE = 5
"""Points with a slope that rows gave at which two sites must tell the same: two small tables may agree on fewer."""

_SAME = 1e-9
"""Relative: so far apart two numbers count as one."""
_NO_ROWS = 1e-9
"""Largest entry of a slope that no row gave: where every row is well classified, plants of one radius tell the same."""


def alike(at: Training) -> tuple[str, str] | None:
    """The first pair of sites that tell the same, by the rounds before this one."""
    names = [site.site_id for site in at.run.members]
    heads = [head.evidence for head in at.state if isinstance(getattr(head, "evidence", None), Evidence)]
    if sum(len(head.risks) for head in heads) < LEAST_ALIKE or heads[0].risks.shape[1] != len(names):
        return None
    pairs = _near_pairs(heads[0].risks)
    return next(((names[g], names[h]) for g, h in pairs if _alike(heads, g, h)), None)


def _near_pairs(risks: FloatArray) -> NDArray[np.intp]:
    """Pairs (n, 2) of sites that may have told the same risks (K, G), in order: of hundreds of plants hardly one.

    From the last point on, for at the first, which is zero, all risks are alike. Who was absent may be like anybody.
    """
    pairs = np.column_stack(np.triu_indices(risks.shape[1], 1))
    nearer = _SAME * float(np.nanmax(np.abs(risks), initial=0.0))
    for told in risks[::-1]:
        apart = np.abs(told[pairs[:, 0]] - told[pairs[:, 1]]) > nearer
        pairs = pairs[~apart]
    return pairs


def left_out(outcome: Poll, run_id: str, pair: tuple[str, str], proven: Collection[str]) -> list[SiteAnswer]:
    """Accounts of who of a pair that tells the same is left out: whoever is ``proven`` to have lied, else by lot."""
    if proven:
        why = {site: _copies(site, *(each for each in pair if each != site)) for site in proven}
        return _excluded(outcome, "contradiction", why)
    out, stays = pair if _coin(run_id, *pair) else pair[::-1]
    return _excluded(outcome, "copied", {out: (
        f"it and {stays} tell the same risks and slopes at every point, also at points of their own: both hold the "
        "same rows; what they say counts once, and lot leaves this one out"
    )})


def _copies(site: str, other: str) -> str:
    return f"it told what {other} told, and contradicts itself where each was asked at points of its own"


def _excluded(outcome: Poll, code: str, why: Mapping[str, str]) -> list[SiteAnswer]:
    return [
        answer.model_copy(update={"status": "excluded", "code": code, "reason": why[answer.site_id]})
        for answer in outcome.answers if answer.site_id in why
    ]


def _alike(heads: Sequence[Evidence], one: int, other: int) -> bool:
    """Whether two sites, by index, told the same risk and slope wherever both answered, and often enough."""
    telling = 0
    for evidence in heads:
        both = ~np.isnan(evidence.risks[:, [one, other]]).any(axis=1)
        risks, rounds = evidence.risks[both], evidence.point_round[both]
        if not _equal(risks[:, one], risks[:, other]):
            return False
        mine, others = _slopes(evidence, one), _slopes(evidence, other)
        for number in rounds:
            if not _equal(mine[number], others[number]):
                return False
            telling += bool(np.abs(mine[number]).max() > _NO_ROWS and number > 1)
    return telling >= LEAST_ALIKE


def _slopes(evidence: Evidence, site: int) -> dict[float, FloatArray]:
    """Slope (D,) of a site's cut at the point of each exchange; it stands before that of the prox point."""
    own = np.flatnonzero(evidence.cut_site == site)
    rounds, first = np.unique(evidence.cut_round[own], return_index=True)
    return {float(number): evidence.cut_slope[own[k]] for number, k in zip(rounds, first, strict=True)}


def _equal(one: FloatArray, other: FloatArray) -> bool:
    return bool((np.abs(one - other) <= _SAME * np.maximum(np.abs(one), np.abs(other)).max(initial=0.0)).all())


def _coin(run_id: str, one: str, other: str) -> bool:
    return bool(hashlib.sha256(f"{run_id} {one} {other}".encode()).digest()[0] % 2)
