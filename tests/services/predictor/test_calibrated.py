"""Sets, probabilities, intervals and abstention of a version with a calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest

from models.conformal.grid import score_grid
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibrated import novelty
from services.contracts.evaluation.calibration import Calibration, CountedRows
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor, coverage_of
from services.predictor.tally import Tally
from services.predictor.written import FEW

GRID = score_grid()
FOUR = [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -3.0, 1.0]]


def held_from(threshold: float, n: int = 200) -> tuple[float, ...]:
    """Half of the rows below the threshold, all of them from it on."""
    return tuple(np.where(GRID >= threshold, n, n // 2) / (n + 1.0))


def calibrated(version: ModelVersion, **changes: Any) -> ModelVersion:
    fields = {
        "kind": "sets", "grid": tuple(GRID.tolist()), "groups": (CountedRows(n_test=200),), "scale": 2.0,
        "held": {"error": held_from(0.3), "size": held_from(5.0), "reach": held_from(1.5)},
    }
    return version.model_copy(update={"calibration": Calibration.model_validate(fields | changes)})


def test_a_set_holds_the_classes_that_come_near_the_best(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    """Scores .75, -.5, .5, -.5: the third is .25 behind, within the threshold of .316; the others 1.25."""
    version = calibrated(make_version(FOUR))
    (found,) = Predictor(version).diagnose([sample])
    assert found.class_set == ("healthy", "blocked_inlet") and found.coverage == 0.9
    weights = np.exp(2.0 * np.array([0.75, -0.5, 0.5, -0.5]))
    assert list((found.probabilities or {}).values()) == pytest.approx(weights / weights.sum())
    assert (found.abstained, found.reason) == (False, "")
    (smaller,) = Predictor(version).diagnose([sample], coverage=0.49)
    assert smaller.class_set == ("healthy",) and smaller.coverage == 0.49
    assert (coverage_of(version, None), coverage_of(version, 0.49)) == (0.9, 0.49)


def test_two_classes_that_share_a_plane_have_a_probability_each(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    """The plane's score .75 is that of the second class, and -.75 that of the first."""
    (found,) = Predictor(calibrated(make_version([[1.0, 0.0, 0.0, 0.0, 0.0]]))).diagnose([sample])
    leak = 1.0 / (1.0 + np.exp(2.0 * -1.5))
    assert found.fault_class == "leak" and found.probabilities == pytest.approx({"healthy": 1.0 - leak, "leak": leak})


def test_a_measurement_is_strange_beyond_the_held_out_ones_and_not_like_the_last_of_them(
    make_version: Callable[..., ModelVersion]
) -> None:
    """On a grid of 2^-40, on which 0.5 can be added and taken away without rounding."""
    grid, least = np.round(GRID * 2.0**40) * 2.0**-40, 2.0**-40
    held = calibrated(make_version(FOUR), grid=tuple(grid.tolist())).calibration
    assert held is not None
    size, reach = held.strangest("size"), held.strangest("reach")
    for sizes, away, reasons in ((size, reach, 0), (size + least, reach, 1), (size, reach + least, 1)):
        (told,) = novelty(held, np.array([sizes]), np.array([[0.5 + away, 0.5]]))
        assert bool(told) == bool(reasons), (sizes, away)


def test_it_abstains_where_every_class_is_possible_and_where_a_row_is_strange(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    wide = {"error": held_from(10.0), "size": held_from(5.0), "reach": held_from(1.5)}
    (found,) = Predictor(calibrated(make_version(FOUR), held=wide)).diagnose([sample])
    assert found.abstained and "can be any of the classes" in found.reason and len(found.class_set or ()) == 4
    for name, said in (("size", "scores are larger"), ("reach", "farther from the middle")):
        held = {"error": held_from(0.3), "size": held_from(5.0), "reach": held_from(1.5)} | {name: held_from(0.1)}
        (found,) = Predictor(calibrated(make_version(FOUR), held=held)).diagnose([sample])
        assert found.abstained and said in found.reason and "97.5%" in found.reason


def test_both_reasons_are_told_of_a_near_and_strange_measurement_and_it_is_counted_once(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    held = {"error": held_from(0.3), "size": held_from(5.0), "reach": held_from(0.1)}
    tally = Tally()
    version = calibrated(make_version(FOUR), held=held)
    (strange,) = Predictor(version, tally=tally).diagnose([sample])
    (both,) = Predictor(version, abstain_below_radius=10.0, tally=tally).diagnose([sample])
    assert both.reason.startswith("robustness radius ") and both.reason.endswith(f"; {strange.reason}")
    (near,) = Predictor(calibrated(make_version(FOUR)), abstain_below_radius=10.0, tally=tally).diagnose([sample])
    assert near.reason.startswith("robustness radius ") and ";" not in near.reason
    assert tally.abstentions() == {(version.name, version.version): 3}
    assert tally.answers() == {(version.name, version.version, 2): 3}


def test_scores_alone_are_counted_as_answers_without_a_set(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    tally = Tally()
    predictor = Predictor(calibrated(make_version(FOUR)), tally=tally)
    scores = predictor.class_scores(predictor.read([sample] * 3))
    (told,) = Predictor(predictor.version).diagnose([sample])
    assert scores.tolist() == [list(told.scores.values())] * 3
    assert tally.answers() == {(predictor.version.name, predictor.version.version, None): 3}


def test_a_calibration_without_a_scale_gives_sets_and_no_probabilities_however_many_are_asked(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    predictor = Predictor(calibrated(make_version(FOUR), scale=None))
    for n in (1, FEW + 1):
        told = [orjson.loads(text) for text in predictor.written(predictor.read([sample] * n))]
        assert [each["probabilities"] for each in told] == [None] * n
        assert {tuple(each["class_set"]) for each in told} == {("healthy", "blocked_inlet")}


def test_a_coverage_is_refused_that_is_none_or_not_to_be_had(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    predictor = Predictor(calibrated(make_version(FOUR)))
    for wrong in (0.0, 1.0, 1.5):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            predictor.diagnose([sample], coverage=wrong)
    for asked in (lambda: predictor.diagnose([sample], coverage=0.999), lambda: coverage_of(predictor.version, 0.999)):
        with pytest.raises(ConflictError, match="needs 999 held-out rows a plant, the fewest there are 200"):
            asked()


def test_a_version_of_before_diagnoses_as_ever_and_says_that_it_has_no_coverage(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    (found,) = Predictor(make_version(FOUR)).diagnose([sample])
    assert found.class_set is found.coverage is found.probabilities is None and not found.abstained
    with pytest.raises(ConflictError, match="carries no calibration") as refused:
        Predictor(make_version(FOUR)).diagnose([sample], coverage=0.9)
    assert refused.value.code == "coverage_not_available"


def test_the_default_coverage_that_is_not_to_be_had_leaves_the_sets_out(
    make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    (found,) = Predictor(calibrated(make_version(FOUR), coverage=0.999)).diagnose([sample])
    assert found.class_set is None and found.coverage is None and found.probabilities is not None
