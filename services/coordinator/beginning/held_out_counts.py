"""Whether what a site, or a cohort's sum, counted of the candidates of a tuning can be of one set of held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.basics import Arrays, FloatArray
from models.tuning.rungs import Exchange
from services.coordinator.run_state.run_errors import ContradictingAnswersError

_BELIEVED = 2
"""Rows that are counted to a row of the join: an agent that starts anew reads the table that is there then."""
_ROUNDING = 1e-6
"""Of a count, whole in a plant's words and so in the sum of a cohort's."""


def check_counts(
    exchange: Exchange, told: Mapping[str, Sequence[Arrays]], members: Mapping[str, Sequence[str]],
    joined: Mapping[str, int],
) -> None:
    """Hold the scores of an exchange to the rows that they are of.

    All of a fold, or of the same folds together, are counts over the same rows: whole numbers, and alike by true class
    (of a target: alike in number) whichever candidate told the rows' classes. A plant answers all of them at once, from
    one reading of its rows. A row is in one fold at most, so no count is above the rows that a plant joined with, but
    where its table grew since: one that told more would choose for all. ``told``: arrays by site or cohort, a part
    each; ``members``: plants by cohort; ``joined``: rows by plant.

    Raises
    ------
    ContradictingAnswersError
        They are not; it names the site, or the plants of the cohort.
    """
    for name, parts in told.items():
        if found := _doubt(exchange, parts, sum(joined[plant] for plant in members.get(name, (name,)))):
            if name not in members:
                raise ContradictingAnswersError(f"{name} lied in the tuning: {found}")
            plants = ", ".join(members[name])
            raise ContradictingAnswersError(f"some plant of {plants} lied in the tuning: their sums say {found}")


def _doubt(exchange: Exchange, parts: Sequence[Arrays], joined: int) -> str:
    first: dict[frozenset[int], FloatArray] = {}
    for place in exchange.told:
        score = parts[place]["score"]
        is_target = score.ndim == 1
        rows = score[:1] if is_target else score.sum(axis=1)
        counts = rows if is_target else score
        if (np.abs(counts - np.round(counts)) > _ROUNDING).any() or (score < -_ROUNDING).any():
            return "counts of held-out rows that are no whole numbers of 0 and more"
        if float(rows.sum()) > _BELIEVED * joined:
            return f"{rows.sum():,.0f} held-out rows, joined with {joined:,}: {_BELIEVED} to one are believed"
        folds = frozenset(part.fold for part in exchange.together(place))
        before = first.setdefault(folds, rows)
        if (np.abs(rows - before) > _ROUNDING).any():
            return f"{_said(before)} held-out rows of one candidate and {_said(rows)} of another, of the same folds"
    return ""


def _said(rows: FloatArray) -> str:
    return ", ".join(f"{each:g}" for each in rows)
