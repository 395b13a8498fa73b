"""How long a round waits, and for whom: the terms of a run whose plants answer when they can."""

from __future__ import annotations

from pydantic import Field

from services.contracts.base import Contract, Slug

METHODS_THAT_WAIT_FOR_NOBODY = ("level-bundle", "level-bundle-plain")
"""Methods in which an answer to an earlier question is as good as one to the last."""


class Waiting(Contract):
    """A round ends when plants of the share ``enough`` of the weight that it asked are done and its time is over.

    That time is ``times`` as long as those took, ``seconds`` at least. Who works on goes on with its question, is asked
    nothing new until it has answered or the plan's deadline for an answer is over, and its answer counts in the round
    in which it comes. A round waits for a plant at work that told nothing for ``furthest_behind`` rounds, and for a
    plant in ``sites`` so many seconds after it was asked (0: never), whatever the others do.
    """

    enough: float = Field(default=0.5, gt=0, le=1, description="share of the weight that was asked")
    times: float = Field(default=1.25, ge=1, le=1000, description="of the time that those took")
    seconds: float = Field(default=0.05, ge=0, le=86_400, description="that a round waits at least")
    furthest_behind: int = Field(
        default=50, ge=1, le=10_000,
        description="rounds; a plant at work is waited for then, one that is silent enters by its cuts",
    )
    sites: dict[Slug, float] = Field(default_factory=dict, description="seconds that a round waits for a plant")


def waiting_refusal(reveal: str, method: str) -> str:
    """Why a plan of this mode and method cannot say how long to wait, on one line; empty where it can."""
    if reveal != "each site":
        return (
            'waiting goes with reveal = "each site": a cohort\'s sum needs the plants of one question together; '
            "on sums a late plant is made up for by sum_threshold"
        )
    if method not in METHODS_THAT_WAIT_FOR_NOBODY:
        return (
            f"waiting goes with the methods {' and '.join(METHODS_THAT_WAIT_FOR_NOBODY)}, in which a late answer "
            f"counts; {method} needs the answers of a round together"
        )
    return ""
