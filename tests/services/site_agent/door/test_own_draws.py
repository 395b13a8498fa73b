"""Whoever asks for steps does not know which rows they go by, nor has them by factors that he knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.door.own_draws import with_own_draws
from services.site_agent.rules.policy import SitePolicy

FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})
HINGE = TrainingSpec.model_validate({"loss": "hinge", "radius": {"rule": "fixed", "value": 0.01}})


def rules(**limits: Any) -> SitePolicy:
    return SitePolicy(
        methods=("fedsgd", "fedavg", "level-bundle-plain"), asset_types=("pump",),
        messages=("join", "round", "tune"), reveal=("each site",), min_samples=20, **limits,
    )


def steps(draw: float, point: Any = None, step_size: float = 1.0, snapshot: float = 0.0) -> dict[str, np.ndarray]:
    at = np.zeros((1, 4)) if point is None else np.asarray(point)[np.newaxis]
    return {
        "point": at, "correction": np.zeros((1, 4)), "step_size": np.full(1, step_size), "draw": np.full(1, draw),
        "snapshot_step": np.full(1, snapshot),
    }


def train_of(site: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows as they stand in a slope, (N, 4), and their labels."""
    train = site.door._vault.current().train
    return np.column_stack([train.features, np.ones(len(train))]), np.where(train.classes == 1, 1.0, -1.0)


def isolated(site: Any, combination: np.ndarray) -> bool:
    """Whether a combination of answers is some row of the site, up to a factor."""
    rows, size = train_of(site)[0], float(combination[-1])
    return bool(size and (np.abs(rows - combination / size).max(axis=1) < 1e-9).any())


def test_draws_are_of_the_secret_the_question_and_the_number_that_was_named() -> None:
    message = {"point": np.ones((2, 3)), "draw": np.array([5.0, 5.0])}
    own = with_own_draws(message, b"secret", b"question")
    assert own["point"] is message["point"] and own["draw"][0] == own["draw"][1]
    others = [
        with_own_draws(message, b"other", b"question"), with_own_draws(message, b"secret", b"another"),
        with_own_draws({"draw": np.array([6.0])}, b"secret", b"question"),
    ]
    drawn = {float(each["draw"][0]) for each in (own, message, *others)}
    assert len(drawn) == 5 and all(each == int(each) and 0 <= each < 2**53 for each in drawn)
    assert np.array_equal(with_own_draws(message, b"secret", b"question")["draw"], own["draw"])
    assert with_own_draws({"point": np.ones(3)}, b"secret", b"question").keys() == {"point"}


def test_a_batch_is_not_the_one_that_the_number_of_the_message_draws(make_site: Any) -> None:
    """At zero weights every coefficient of a known batch is known, so as many answers as rows were the rows."""
    one, other = make_site(policy=rules(), folder="one"), make_site(policy=rules(), folder="other")
    features, labels = train_of(one)
    count = len(labels)
    ends = list[np.ndarray]()
    for number in range(4):
        asked = {"method": "fedsgd", "spec": HINGE, "parameters": {"batch": 0.3}, "arrays": steps(float(number))}
        said = one.ask("round", round=number + 1, **asked)
        assert isinstance(said, SiteUpdate)
        known = np.random.default_rng(number).permutation(count)[: round(0.3 * count)]
        ends.append(said.arrays["local_point"][0])
        assert not np.allclose(ends[-1], (labels[known, None] * features[known]).mean(axis=0), atol=1e-6)
        again = one.ask("round", round=number + 1, run_id="b" * 32, **asked)
        assert np.array_equal(again.arrays["local_point"][0], ends[-1]), "the same question is told the same"
        elsewhere = other.ask("round", round=number + 1, **asked)
        assert not np.allclose(elsewhere.arrays["local_point"][0], ends[-1]), "another vault draws other rows"
    assert len({each.tobytes() for each in ends}) == 4


def test_batches_a_row_apart_give_no_row_by_their_numbers_of_rows(make_site: Any) -> None:
    site, ends = make_site(policy=rules()), list[np.ndarray]()
    count = len(train_of(site)[1])
    for number, size in enumerate((30, 31), start=1):
        said = site.ask(
            "round", round=number, method="fedsgd", spec=HINGE, parameters={"batch": size / count}, arrays=steps(7.0)
        )
        ends.append(size * said.arrays["local_point"][0])
    assert not isolated(site, ends[1] - ends[0])


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_steps_give_no_row_by_the_number_of_steps(make_site: Any, seed: int) -> None:
    """Three steps less two are the gradient at the last place, and a cut beside it differs from that in a row or so."""
    site, rng, number, tempting = make_site(policy=rules()), np.random.default_rng(seed), 0, 0
    features, labels = train_of(site)

    def gradient(point: np.ndarray) -> np.ndarray:
        return np.where(labels * (features @ point) < 1.0, -labels, 0.0)

    while number < 30 or (not tempting and number < 300):  # the vault's own draws say when a row changes its part
        point = np.append(3 * rng.standard_normal(3), 0.0)
        point[3] = -point[:3] @ features[:, :3].mean(axis=0)
        parameters = {"epochs": 3.0, "batch": 1.0}
        said = site.ask(
            "round", round=(number := number + 1), method="fedavg", spec=HINGE, parameters=parameters,
            arrays=steps(0.0, point, 1.0, 2.0),
        )
        end, snapshot = said.arrays["local_point"][0], said.arrays["snapshot"][0]
        beside = snapshot + 0.02 * rng.standard_normal(4)
        tempting += np.count_nonzero(gradient(snapshot) - gradient(beside)) == 1
        cut = site.ask(
            "round", round=(number := number + 1), method="fedavg", spec=HINGE, parameters=parameters,
            arrays=steps(0.0, beside, 0.0),
        )
        assert not isolated(site, cut.arrays["slope"][0] - (snapshot - end))
    assert tempting, "one row does change its part now and then"


def test_folds_give_no_row_by_their_numbers_of_rows(make_site: Any) -> None:
    """N times a cut over all rows less n times one without a fold are the fold's rows; between points one changes."""
    site, rng = make_site(policy=rules()), np.random.default_rng(4)
    features, labels = train_of(site)
    count, folds = len(labels), 8

    def cuts(points: list[np.ndarray], fold: int, number: int) -> list[np.ndarray]:
        parts = [{"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": fold} for _ in points]
        asked = TuningTask.model_validate({"folds": folds, "seed": 5, "lifts": [None], "scored": False, "parts": parts})
        arrays = {f"point_{j}": point[np.newaxis] for j, point in enumerate(points)}
        said = site.ask("tune", round=number, method="level-bundle-plain", spec=HINGE, tuning=asked, arrays=arrays)
        assert isinstance(said, SiteUpdate), said
        return [said.arrays[f"slope_{j}"][0] for j in range(len(points))]

    def whole(point: np.ndarray, number: int) -> np.ndarray:
        said = site.ask(
            "round", round=number, method="level-bundle-plain", spec=HINGE, arrays={"point": point[np.newaxis]}
        )
        return said.arrays["slope"][0]

    for turn in range(16):
        point = np.append(3 * rng.standard_normal(3), 0.0)
        point[3] = -point[:3] @ features[:, :3].mean(axis=0)
        points = [point, point + 0.12 * rng.standard_normal(4)]
        of_all = [whole(each, 3 * turn + place) for place, each in enumerate(points, start=1)]
        without = cuts(points, turn % folds, 3 * turn + 3)
        for kept in range(count - count // folds - 2, count):
            combination = count * (of_all[0] - of_all[1]) - kept * (without[0] - without[1])
            assert not isolated(site, combination)


def pinball(quantile: float) -> TrainingSpec:
    loss = {"name": "pinball", "quantile": quantile}
    return TrainingSpec.model_validate({"loss": loss, "radius": {"rule": "fixed", "value": 0.0}})


def test_two_quantiles_and_the_sum_of_all_rows_give_no_row(make_site: Any, asset_type: Any) -> None:
    """``a - b + (p - q) (sum of all)`` of pinball losses at p and q are the rows whose target lies between the two."""
    rng, table = np.random.default_rng(0), [["flow", "ripple", "oil", "gap"]]
    for _ in range(100):
        flow, ripple, oil = rng.uniform(20, 80), rng.uniform(-8, 8), rng.uniform(0, 4)
        table.append([flow, ripple, oil, 4 + 0.03 * (flow - 50) + 0.1 * ripple + 0.3 * rng.standard_normal()])
    target = Target(name="gap", unit="mm", low=0.0, high=8.0)
    kind = asset_type.model_copy(update={"target": target, "fault_classes": ()})
    site = make_site(table, asset_type=kind, policy=rules(), target_column="gap")
    train = site.door._vault.current().train
    rows, targets = np.column_stack([train.features, np.ones(len(train))]), train.targets
    number, tempting = 0, 0

    def asked(point: np.ndarray, quantile: float) -> np.ndarray:
        nonlocal number
        number += 1
        said = site.ask(
            "round", round=number, method="level-bundle-plain", spec=pinball(quantile),
            arrays={"point": point[np.newaxis]},
        )
        assert isinstance(said, SiteUpdate), said
        return len(rows) * said.arrays["slope"][0]

    everyone = asked(np.array([0.0, 0.0, 0.0, 5.0]), 0.9) / 0.1
    for _ in range(40):
        point = np.append(3 * rng.standard_normal(3), 0.0)
        point[3] = 0.5 - point[:3] @ [0.5, 0.5, 0.5] + 0.1 * rng.standard_normal()
        beside = point + [0.0, 0.0, 0.0, 0.02]
        tempting += np.count_nonzero((rows @ point < targets) != (rows @ beside < targets)) == 1
        left = asked(beside, 0.5) + 0.5 * everyone - asked(point, 0.2) - 0.2 * everyone
        assert not isolated(site, left)
    assert tempting > 3
