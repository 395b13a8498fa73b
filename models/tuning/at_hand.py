"""A tuning over sites that are all in this process: the exchanges of the race without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from models.basics import FloatArray
from models.losses.base import Loss
from models.methods.guard import Guard
from models.methods.row_account import Accounted
from models.methods.site_answers import RiskSite
from models.one_vs_rest import accounted_heads
from models.problem import SiteProblem
from models.tuning.candidates import Candidate
from models.tuning.least_squares import of_squares
from models.tuning.racing import Tuner
from models.tuning.rungs import Asked
from models.tuning.scores import fold_score
from models.tuning.starts import answer_start


class TuningSite(Protocol):
    """One site of a tuning, with its rows."""

    def problems(self, candidate: Candidate, fold: int) -> Sequence[SiteProblem]:
        """Problem of each head by a candidate's terms, on the rows without a fold."""
        ...

    def scores(self, candidate: Candidate, fold: int, weights: FloatArray) -> FloatArray:
        """What the rows of a fold say of weights (K, D): counts or sums (``models.tuning.scores``)."""
        ...


def answer_cuts(problems: Sequence[SiteProblem], weights: FloatArray, guard: Guard | None = None) -> Accounted:
    """Risk and cut of each head at weights (K, D), every array with a leading axis K, with the account by rows."""
    return accounted_heads(RiskSite(), problems, {"point": weights}, {}, guard)


def race(tuner: Tuner, sites: Mapping[str, TuningSite], loss: Loss) -> Tuner:
    """Run a tuner to its choice, which it then has; ``ProblemError`` where nothing could be scored."""
    while (exchange := tuner.exchange()) is not None:
        if exchange.scored:
            tuner.tell_scores([_score(exchange.together(place), sites, loss) for place in exchange.told])
        else:
            tuner.tell_cuts([
                {
                    name: answer_part(part, site.problems(part.candidate, part.fold)).arrays
                    for name, site in sites.items()
                }
                for part in exchange.asked
            ])
    return tuner


def answer_part(part: Asked, problems: Sequence[SiteProblem], guard: Guard | None = None) -> Accounted:
    """What a site says to a part: where its step ends, or its cuts, with the account by rows."""
    if part.penalty is not None:
        return answer_start(problems, part.penalty, guard)
    return answer_cuts(of_squares(problems) if part.squares else problems, part.weights, guard)


def _score(parts: Sequence[Asked], sites: Mapping[str, TuningSite], loss: Loss) -> float:
    told = [site.scores(part.candidate, part.fold, part.weights) for part in parts for site in sites.values()]
    return fold_score(np.add.reduce(told), loss)
