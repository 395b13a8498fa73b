"""An honest tuning at plants behind their gates, and what a coordinator has of it: cuts and ends of steps over folds.

Answers over two folds share two thirds of a plant's rows, so their differences are of few rows. What leaves is written
down by lift, for vectors of two lifts have different lengths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.features.lift import Lift
from models.losses.catalogue import LossName
from models.methods.row_account import RowAccount, joined
from models.problem import SiteProblem, SiteTerms
from models.tuning.at_hand import answer_part
from models.tuning.automatic import AUTO_FOLDS, AUTO_RULE, automatic_radii
from models.tuning.budget import MOST_TRAININGS, Budget, OneTraining
from models.tuning.candidates import grid
from models.tuning.fold_guard import FoldGuard, over_all
from models.tuning.folds import Folds, deal_rows
from models.tuning.racing import Tuner
from models.tuning.reference import FIRST_RARE_ROUNDS, FIRST_ROUNDS
from models.tuning.rungs import Asked, race_numbers, rungs
from models.tuning.scores import class_counts, error_sums, fold_score
from models.tuning.terms import TuningTerms
from services.contracts.problems.lift import draw_lift
from services.contracts.problems.tuning import AUTO, tuning_grid
from services.site_agent.limits.kinds import kind_of
from services.site_agent.rules.policy import Refusal
from tests.attacks.gated_plants import Plant

_SCORES: Final = 4  # numbers that a plant tells of a candidate
_RUN: Final = "tuning-1"


@dataclass
class TunedPlant:
    """A plant in a tuning; ``sent`` holds by lift the arrays of each answer, ends of steps as the slopes they say.

    ``several``: what reads high in its first sensor is a third class, where it is of the second.
    """

    plant: Plant
    on_sums: bool
    lifts: tuple[Lift | None, ...]
    several: bool = False
    sent: dict[int, list[dict[str, FloatArray]]] = field(default_factory=lambda: defaultdict(list))

    @cached_property
    def folds(self) -> Folds:
        """Fold (N,) of each row."""
        part, classes = self.plant.part, self.plant.problem.spec.loss.task == "classification"
        return deal_rows(part.features, self.classes if classes else np.zeros(len(part), np.intp), AUTO_FOLDS, 0)

    @cached_property
    def classes(self) -> NDArray[np.intp]:
        """Class (N,) of each row: two, or three."""
        part = self.plant.part
        high = part.features[:, 0] > np.median(part.features[:, 0])
        return np.where(self.several & high & (part.classes == 1), 2, part.classes).astype(np.intp)

    @property
    def heads(self) -> tuple[FloatArray, ...]:
        """Labels or targets (N,) of each head."""
        labels = self.plant.problem.labels
        return tuple(np.where(self.classes == k, 1.0, -1.0) for k in range(3)) if self.several else (labels,)

    def rows(self, lift: int) -> FloatArray:
        """Rows (N, D) as they stand in a slope of a lift: the intercept's 1 last."""
        features = self._features(lift)
        return np.column_stack([features, np.ones(len(features))])

    def answer(self, parts: Sequence[Asked]) -> list[Arrays]:
        """What leaves in one exchange, by part; ``Refusal`` where the plant says no."""
        known = np.ones(len(self.plant.part), dtype=bool)
        squares = any(asked.squares for asked in parts)
        kind = kind_of(repr(self.plant.problem.spec.loss), {}, squares=squares)
        guard = self.plant.gate.guard(self.plant.part, known, kind=kind, on_sums=self.on_sums)
        told, accounts = list[Arrays](), list[RowAccount]()
        for asked in parts:
            kept = self.folds != asked.fold
            heads = [self._problem(asked, kept, labels) for labels in self.heads]
            found = answer_part(asked, heads, FoldGuard(guard, kept))
            account = over_all(found.account, kept)
            accounted = self.lifts[asked.candidate.lift] is None
            accounts.append(replace(account, whole=account.whole and accounted))
            told.append(found.arrays)
        try:
            account = joined(accounts)
            self.plant.figures = self.plant.gate.admit(self.plant.part, known, _RUN, account, guard.choices, kind)
        except Refusal as refusal:
            self.plant.refused = refusal.refusal_code
            raise
        for asked, arrays in zip(parts, told, strict=True):
            slopes = arrays if asked.penalty is None else {"local_point": -asked.penalty * arrays["local_point"]}
            self.sent[asked.candidate.lift].append(dict(slopes))
        self.plant.accounts += accounts
        return told

    def scores(self, asked: Asked) -> FloatArray:
        """Counts or sums of errors of a fold."""
        held, lifted = self.folds == asked.fold, self._features(asked.candidate.lift)
        if self.plant.problem.spec.loss.task == "regression":
            return error_sums(asked.weights, lifted[held], self.plant.part.targets[held], self.plant.problem.spec.loss)
        return class_counts(asked.weights, lifted[held], self.classes[held], 3 if self.several else 2)

    def _features(self, lift: int) -> FloatArray:
        features, chosen = self.plant.problem.features, self.lifts[lift]
        return features if chosen is None else chosen.apply(features)

    def _problem(self, asked: Asked, kept: NDArray[np.bool_], labels: FloatArray) -> SiteProblem:
        problem, candidate = self.plant.problem, asked.candidate
        spec = replace(
            problem.spec, radius=problem.spec.radius * candidate.radius, label_flip_cost=candidate.label_flip_cost
        )
        return SiteProblem(self._features(candidate.lift)[kept], labels[kept], spec)


def honest_tuning(
    plants: Mapping[str, Plant], *, on_sums: bool, rows_by_class: tuple[int, int] | None = None, several: bool = False
) -> dict[str, TunedPlant]:
    """A tuning as "auto" has it, on sums over all plants or on their single answers; it ends where a plant refuses.

    ``rows_by_class``: told to the coordinator of two classes where one is rare. ``several``: three classes, by squares.
    """
    first = next(iter(plants.values())).problem
    lifts = tried_lifts(first.features.shape[1], rows_by_class, first.spec.loss.name)
    tuned = {name: TunedPlant(plant, on_sums, lifts, several) for name, plant in plants.items()}
    shares = _shares(plants)
    tuner = _tuner(plants, shares, on_sums, lifts, is_rare=rows_by_class is not None, several=several)
    try:
        while (exchange := tuner.exchange()) is not None:
            if exchange.scored:
                scored = [exchange.together(place) for place in exchange.told]
                counts = [[plant.scores(part) for part in parts for plant in tuned.values()] for parts in scored]
                loss = tuner.terms.loss
                tuner.tell_scores([fold_score(np.add.reduce(each), loss) for each in counts])
                continue
            answers = {name: plant.answer(exchange.asked) for name, plant in tuned.items()}
            by_part = [{name: told[place] for name, told in answers.items()} for place in range(len(exchange.asked))]
            tuner.tell_cuts([_summed(each, shares) for each in by_part] if on_sums else by_part)
    except Refusal:
        pass
    return tuned


def _tuner(
    plants: Mapping[str, Plant], shares: Mapping[str, float], on_sums: bool, lifts: Sequence[Lift | None], *,
    is_rare: bool, several: bool,
) -> Tuner:
    spec = next(iter(plants.values())).problem.spec
    sites = tuple(SiteTerms(name, shares[name], plant.problem.spec.radius, 1.0) for name, plant in plants.items())
    if on_sums:
        sites = (SiteTerms("all", 1.0, sum(each.weight * each.radius for each in sites), 1.0),)
    terms = TuningTerms(sites, spec.loss, spec.transport_norm, spec.fit_intercept, coupled=several)
    n_features = next(iter(plants.values())).problem.features.shape[1]
    sizes = tuple(n_features if each is None else each.n_outputs for each in lifts)
    heads, scores = (3, 9) if several else (1, _SCORES)
    radii = automatic_radii(spec.loss.name, rare=is_rare, by_squares=several)
    candidates = grid(radii, (spec.label_flip_cost,), len(sizes))
    numbers = race_numbers(candidates, sizes, heads, rungs(len(candidates), AUTO_FOLDS), scores)
    rounds = FIRST_RARE_ROUNDS if is_rare else FIRST_ROUNDS
    numbers *= rounds / FIRST_ROUNDS
    budget = Budget(OneTraining(rounds, numbers / MOST_TRAININGS + 1.0), MOST_TRAININGS)
    return Tuner(terms, candidates, sizes, heads, AUTO_FOLDS, budget, AUTO_RULE, scores)


def _shares(plants: Mapping[str, Plant]) -> dict[str, float]:
    total = sum(len(plant.part) for plant in plants.values())
    return {name: len(plant.part) / total for name, plant in plants.items()}


def _summed(answers: Mapping[str, Arrays], shares: Mapping[str, float]) -> dict[str, Arrays]:
    """Weighted sums of all plants' answers, as a cohort of them has it."""
    first = next(iter(answers.values()))
    sums = {name: np.asarray(sum(shares[site] * each[name] for site, each in answers.items())) for name in first}
    return {"all": sums}


@cache
def tried_lifts(
    n_features: int, rows_by_class: tuple[int, int] | None = None, loss: LossName = "hinge"
) -> tuple[Lift | None, ...]:
    """The lifts that "auto" tries, as a plan draws them."""
    rows = None if rows_by_class is None else np.array(rows_by_class, dtype=np.float64)
    lifts = tuning_grid(AUTO, None, 1.0, 0.0, n_features, loss=loss, rows_by_class=rows).lifts
    return tuple(draw_lift(each, n_features) for each in lifts)
