"""Coverage of sets and intervals at each of four unlike plants, and how large they are.

Each table is dealt to four plants by its first principal component, so that no two are alike. In every draw a plant's
rows are split anew: three fifths train, a fifth is counted on the grid, a fifth is new. Coverage is asked to be 0.9;
what is shown are means over the draws, since that is what is promised.

    counts      as the service does it: plants count on the grid, the threshold is good for every plant
    mixture     the same, good for the four plants mixed alike, and no more
    exact       the same without rounding up to the grid, which would tell a row's score: what the rounding costs
    one width   intervals of one width at every estimate, from counts on the grid (targets only)
    folds       as the estimators do it: cross-conformal, training rows and counted rows together
    markov      the width that the worst-case risk implies (targets only), not cut to the target's range

``--scores`` compares nonconformity scores by the size of their sets (exact quantiles, all plants together).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from models.basics import FloatArray
from models.conformal.coverage import Counted, held_by_all, least_threshold
from models.conformal.grid import counts_at_or_below, counts_within, score_grid
from models.conformal.scores import class_margins, class_scores, class_sets, own_margins
from models.conformal.spread import residual_counts, shape_of, tenth_of
from models.estimators import FederatedDRClassifier, FederatedDRRegressor
from tests.benchmarks.command import at_least, in_words, output_file
from tests.benchmarks.unlike_plants import CLASSES, PLANTS, IntArray, class_table, parts, target_table, unlike_plants

COVERAGE, LEAST, NARROWER = 0.9, 0.88, 4.0
RUNS = ("abalone, huber", "abalone, pinball", "ai4i2020, pinball", "palmer_penguins, pinball")
GRID = score_grid()
A_DECADE = 128
"""Steps of a spread to a factor of ten."""

Row = dict[str, Any]


def exact_threshold(scores: FloatArray, plants: IntArray) -> float:
    """Largest of the plants' exact quantiles: what nobody may know."""
    found = []
    for plant in range(PLANTS):
        own = np.sort(scores[plants == plant])
        rank = int(np.ceil((len(own) + 1) * COVERAGE - 1e-12))
        found.append(float(own[rank - 1]) if rank <= len(own) else np.inf)
    return max(found)


def shares_of(scores: FloatArray, plants: IntArray, kind: str) -> FloatArray:
    """Held shares (4, T) of the plants' counts: of the scores ("sets") or of their absolute values ("sizes")."""
    found = []
    for plant in range(PLANTS):
        counts, n = counts_at_or_below(scores[plants == plant], GRID), int((plants == plant).sum())
        told = Counted(counts_within(counts) if kind == "sizes" else counts, n)
        found.append(told.held)
    return np.stack(found)


def spread_ends(
    trained: tuple[FloatArray, FloatArray], counted: tuple[FloatArray, FloatArray], plants: IntArray, *, every: bool
) -> tuple[FloatArray, FloatArray]:
    """Least and largest residual by tenth of the estimate, as the service finds them from plants' counts.

    ``trained`` and ``counted``: estimates and targets of the training rows, and of the rows that are counted.
    """
    shape = shape_of(residual_counts(*trained, coarse=True))
    told = [residual_counts(*(each[plants == plant] for each in counted)) for plant in range(PLANTS)]
    shares = np.stack([Counted(shape.held(each), int(each[:, -1].sum())).held for each in told])
    step = least_threshold(held_by_all(shares) if every else shares.mean(axis=0), COVERAGE)
    assert step is not None
    return shape.ends(step)


def exact_spread(
    trained: tuple[FloatArray, FloatArray], counted: tuple[FloatArray, FloatArray], plants: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The same by the rows' own residuals: the ends of a shape grow together, and are no thresholds."""
    shape = shape_of(residual_counts(*trained, coarse=True))
    least, most = -(10.0 ** (-shape.below / A_DECADE)), 10.0 ** (-shape.above / A_DECADE)
    tenths, residuals = tenth_of(counted[0]), np.clip(counted[0], 0.0, 1.0) - counted[1]
    size = exact_threshold(np.maximum(residuals / least[tenths], residuals / most[tenths]), plants)
    return size * least, size * most


def first(held: FloatArray, level: float, grid: FloatArray) -> float:
    place = least_threshold(held, level)
    return np.inf if place is None else float(grid[place])


def ends_of(scores: FloatArray, plants: IntArray, kind: str, *, every: bool) -> tuple[float, float]:
    """Least and largest score that are held: for every plant, or for the plants mixed alike."""
    def over(shares: FloatArray) -> FloatArray:
        return held_by_all(shares) if every else np.asarray(shares.mean(axis=0))

    if kind == "sizes":
        size = first(over(shares_of(scores, plants, kind)), COVERAGE, GRID[len(GRID) // 2 :])
        return -size, size
    return -np.inf, first(over(shares_of(scores, plants, kind)), COVERAGE, GRID)


def by_plant(values: Any, plants: IntArray) -> FloatArray:
    return np.array([np.mean(np.asarray(values)[plants == plant]) for plant in range(PLANTS)])


def of_classes(features: FloatArray, classes: IntArray, plants: IntArray, seed: int) -> dict[str, FloatArray]:
    """Coverage and mean size of the sets at each plant in one draw."""
    train, counted, new = parts(plants, seed)
    model = FederatedDRClassifier(gap=1e-2, calibration_folds=0)
    model.fit(features[train], classes[train], groups=plants[train])
    held, fresh = (_scores(model, features[rows]) for rows in (counted, new))
    errors = own_margins(held, classes[counted])
    both = np.concatenate([train, counted])
    crossed = FederatedDRClassifier(gap=1e-2).fit(features[both], classes[both], groups=plants[both])
    sets = {
        "counts": class_sets(fresh, ends_of(errors, plants[counted], "sets", every=True)[1]),
        "mixture": class_sets(fresh, ends_of(errors, plants[counted], "sets", every=False)[1]),
        "exact": class_sets(fresh, exact_threshold(errors, plants[counted])),
        "folds": crossed.predict_set(features[new], COVERAGE),
    }
    found: dict[str, FloatArray] = {}
    for name, each in sets.items():
        found[f"{name} coverage"] = by_plant(each[np.arange(len(new)), classes[new]], plants[new])
        found[f"{name} size"] = by_plant(each.sum(axis=1), plants[new])
    return found


def of_targets(
    features: FloatArray, targets: FloatArray, plants: IntArray, seed: int, loss: str
) -> dict[str, FloatArray]:
    """Coverage and width, in units of the target's range, of the intervals at each plant in one draw."""
    train, counted, new = parts(plants, seed)
    made: dict[str, Any] = {"loss": loss, "radius": 1e-4, "gap": 1e-2} | ({"epsilon": 0.045} if loss == "huber" else {})
    model = FederatedDRRegressor(**made, calibration_folds=0).fit(features[train], targets[train], groups=plants[train])
    value, held = model.predict(features[new]), model.predict(features[counted])
    fitted = (model.predict(features[train]), targets[train])
    both = np.concatenate([train, counted])
    crossed = FederatedDRRegressor(**made).fit(features[both], targets[both], groups=plants[both])
    whose, told, tenths = plants[counted], (held, targets[counted]), tenth_of(value)
    residuals = {
        "counts": spread_ends(fitted, told, whose, every=True),
        "mixture": spread_ends(fitted, told, whose, every=False),
        "exact": exact_spread(fitted, told, whose),
    }
    cut = np.clip(value, 0.0, 1.0)
    ends = {name: np.column_stack([cut - most[tenths], cut - low[tenths]]) for name, (low, most) in residuals.items()}
    low, high = ends_of(held - targets[counted], whose, "sizes", every=True)
    ends["one width"] = np.column_stack([value - high, value - low])
    ends["folds"] = crossed.predict_interval(features[new], COVERAGE)
    ends["markov"] = model.predict_interval(features[new], COVERAGE, method="markov")
    found: dict[str, FloatArray] = {}
    for name, each in ends.items():
        least, most = (each if name == "markov" else np.clip(each, 0.0, 1.0)).T
        found[f"{name} coverage"] = by_plant((least <= targets[new]) & (targets[new] <= most), plants[new])
        found[f"{name} size"] = by_plant(most - least, plants[new])
    return found


def _scores(model: FederatedDRClassifier, features: FloatArray) -> FloatArray:
    found = np.asarray(model.decision_function(features))
    return class_scores(found[:, None] if found.ndim == 1 else found)


def measure(draws: int) -> list[Row]:
    """A row for each plant of each table, means over the draws."""
    found = []
    for name in (*CLASSES, *RUNS):
        began = time.perf_counter()
        target = name not in CLASSES
        features, outcomes = target_table(name.split(", ")[0]) if target else class_table(name)
        plants = unlike_plants(features)
        told = [
            of_targets(features, outcomes, plants, seed, name.split(", ")[1]) if target
            else of_classes(features, outcomes.astype(np.intp), plants, seed)
            for seed in range(draws)
        ]
        mean = {key: np.mean([each[key] for each in told], axis=0) for key in told[0]}
        counted = np.bincount(plants[parts(plants, 0)[1]], minlength=PLANTS)
        for plant in range(PLANTS):
            figures = {key: round(float(values[plant]), 4) for key, values in mean.items()}
            found.append({"table": name, "plant": plant + 1, "counted rows": int(counted[plant]), **figures})
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def score_sizes(draws: int) -> list[Row]:
    """Mean size of the sets by margins, 1 - probability (LAC) and cumulated probability (APS), exact quantiles."""
    found = []
    for name in CLASSES:
        features, classes = class_table(name)
        plants = unlike_plants(features)
        sizes: dict[str, list[float]] = {}
        for seed in range(draws):
            train, counted, new = parts(plants, seed)
            model = FederatedDRClassifier(gap=1e-2).fit(features[train], classes[train], groups=plants[train])
            held, fresh = (_scores(model, features[rows]) for rows in (counted, new))
            for kind, strange in (("margin", class_margins), ("LAC", _lac(model)), ("APS", _aps(model))):
                own = strange(held)[np.arange(len(counted)), classes[counted]]
                rank = int(np.ceil((len(own) + 1) * COVERAGE))
                sets = strange(fresh) <= np.sort(own)[rank - 1]
                sizes.setdefault(kind, []).append(float(sets.sum(axis=1).mean()))
        found.append({"table": name, **{kind: round(float(np.mean(each)), 4) for kind, each in sizes.items()}})
    return found


def _lac(model: FederatedDRClassifier) -> Any:
    return lambda scores: 1.0 - softmax(model.probability_scale_ * scores, axis=1)


def _aps(model: FederatedDRClassifier) -> Any:
    def cumulated(scores: FloatArray) -> FloatArray:
        likely = softmax(model.probability_scale_ * scores, axis=1)
        order = np.argsort(-likely, axis=1)
        sums = np.cumsum(np.take_along_axis(likely, order, axis=1), axis=1)
        found = np.empty_like(likely)
        np.put_along_axis(found, order, sums, axis=1)
        return found

    return cumulated


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a plant is below the wanted coverage, or the intervals are not narrow enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=at_least(), default=20)
    parser.add_argument("--scores", action="store_true", help="compare nonconformity scores instead")
    parser.add_argument("--json", type=output_file)
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = score_sizes(chosen.draws) if chosen.scores else measure(chosen.draws)
    heads = list(dict.fromkeys(key for row in rows for key in row))
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(row.get(head, "")) for head in heads) + " |")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if chosen.scores:
        return 0
    low = [row for row in rows if min(row["counts coverage"], row["folds coverage"]) < LEAST]
    widths: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["table"] not in CLASSES:
            widths.setdefault(row["table"], []).append((row["markov size"], row["counts size"]))
    # The plants have the same number of new rows, so the mean over all of these is that of the plants' means.
    times = {name: float(np.divide(*np.mean(each, axis=0))) for name, each in widths.items()}
    print(f"times narrower than Markov's, good for every plant: {times}", file=sys.stderr)
    return int(bool(low) or max(times.values()) < NARROWER)


if __name__ == "__main__":
    raise SystemExit(in_words(main))
