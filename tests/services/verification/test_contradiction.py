"""Two risks at one point: a contradiction where they are exact, and where told from above by what cuts explain."""

from __future__ import annotations

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.problems.training_spec import TrainingSpec
from services.verification.contradiction import OF_THE_STATED_RISK, Answer, contradiction_of


def answer(when: str, risk: float, height: float, at: float = 0.5) -> Answer:
    """What a plant says at a point: a risk, and a flat cut of that height."""
    said = {
        "risk": np.array([risk]), "cut_height": np.array([height]), "slope": np.zeros((1, 3)),
        "norm_weight": np.zeros(1),
    }
    return Answer(when, TrainingSpec(), {"point": np.array([[1.0, -2.0, at]])}, said)


def test_exact_risks_at_one_point_are_one_number() -> None:
    one, other = answer("round 1", 0.5, 0.4), answer("round 2", 0.51, 0.4)
    assert "its risk at one point is 0.5 in round 1 and 0.51 in round 2" in contradiction_of([one, other])
    assert "its risk at one point is 0.5 in round 1 and 0.51 in round 2" in contradiction_of([other, one])
    assert not contradiction_of([one, answer("round 2", 0.5, 0.3)])


@pytest.mark.parametrize("swapped", [False, True])
def test_risks_from_above_may_differ_by_as_much_as_the_cut_beside_the_higher_is_too_low(swapped: bool) -> None:
    """The higher tells of a risk of .46 at least, the lower of one of .45 or .47 at most."""
    higher = answer("round 2", 0.52, 0.4)
    for risk, false in ((0.45, True), (0.47, False)):
        pair = [answer("round 1", risk, 0.3), higher]
        found = contradiction_of(pair[::-1] if swapped else pair, above=True)
        assert bool(found) == false
    assert found == "" and "of which its cut explains 0.06" in contradiction_of(
        [higher, answer("round 1", 0.45, 0.3)], above=True
    )


def test_a_risk_from_above_is_held_to_all_cuts_as_it_stands() -> None:
    found = contradiction_of([answer("round 1", 0.52, 0.4), answer("round 2", 0.6, 0.53, at=0.6)], above=True)
    assert "its risk 0.52 in round 1 lies below 0.53, which its answer of round 2 proves" in found


@pytest.mark.parametrize(("slope", "false"), [(1.0, True), (1e5, False)])
def test_what_large_terms_leave_may_be_rounding_and_convicts_nobody(slope: float, false: bool) -> None:
    """The cut lies .01 above the risk, as a difference of terms of the slope's size."""
    steep = answer("round 2", slope + 0.51, slope + 0.51)
    steep.said["slope"][0, 0] = slope
    beside = answer("round 1", 0.5, 0.4)
    beside.asked["point"][0, 0] = 0.0
    assert bool(contradiction_of([beside, steep])) == false


def test_a_lower_risk_bounds_another_by_its_cuts_alone() -> None:
    """Two risks at one point differ, as they may; what proves a risk above the other's is false."""
    higher, lower = answer("round 1", 0.5, 0.45), answer("round 2", 0.3, 0.25)
    assert contradiction_of([higher], [lower]) == ""
    assert "lies below 0.45, which its answer of round 1 proves" in contradiction_of([lower], [higher])


def of_planes(*answers: Answer) -> Answer:
    """One answer that says of each plane what these say of theirs."""
    first = answers[0]
    asked, said = (
        {name: np.concatenate([getattr(each, kind)[name] for each in answers]) for name in getattr(first, kind)}
        for kind in ("asked", "said")
    )
    return Answer(first.when, first.spec, asked, said)


@pytest.mark.parametrize("plane", [0, 1, 2])
def test_planes_are_held_each_to_its_own(plane: int) -> None:
    """Planes move apart: that others were asked elsewhere says nothing of the one that was asked again."""
    before, after = ([answer(when, 0.5, 0.4, at=at + k) for k in range(3)] for when, at in (("1", 0.5), ("2", 0.7)))
    assert not contradiction_of([of_planes(*before), of_planes(*after)])
    for again, words in (
        (answer("2", 0.51, 0.4, at=0.5 + plane), "its risk at one point is 0.5 in 1 and 0.51 in 2"),
        (answer("2", 0.6, 0.53, at=0.6 + plane), "its risk 0.5 in 1 lies below 0.53, which its answer of 2 proves"),
    ):
        told = [*after[:plane], again, *after[plane + 1 :]]
        assert words in contradiction_of([of_planes(*before), of_planes(*told)])


@pytest.mark.parametrize(
    ("swing", "offset", "minorant_swing", "words"),
    [(0.15, 0.4, 0.0, "lies below 0.55"), (0.0, 0.25, 0.15, "lies below 0.55"), (0.05, 0.45, 0.0, "")],
)
def test_each_cut_rises_by_its_own_swing(swing: float, offset: float, minorant_swing: float, words: str) -> None:
    """From 1, where the told cut is .4 high, to 2, where the risk is .5."""
    beside, one = answer("round 1", 0.5, 0.3), answer("round 2", 0.5, 0.4)
    beside.asked["point"][0, 0] = 2.0
    cuts = {
        "swing": np.array([[swing, 0.0]]), "minorant_offset": np.array([offset]), "minorant_slope": np.zeros((1, 3)),
        "minorant_norm_weight": np.zeros(1), "minorant_swing": np.array([[minorant_swing, 0.0]]),
    }
    found = contradiction_of([beside, Answer(one.when, one.spec, one.asked, {**one.said, **cuts})])
    assert words in found and bool(found) == bool(words)


@pytest.mark.parametrize(
    ("weight", "minorant", "words"),
    [
        (0.3, None, "lies below 0.9"), (-0.3, None, ""), (0.3, (-5.0, 0.1), "lies below 0.9"),
        (0.1, (-5.0, 0.3), "lies below 0.9"), (0.1, (-5.0, -0.3), ""), (0.1, (0.6, 0.0), "lies below 0.6"),
        (0.1, (0.6, -0.1), ""),
    ],
)
def test_a_risk_is_nowhere_below_the_largest_norm_weight_times_the_norm(
    weight: float, minorant: tuple[float, float] | None, words: str
) -> None:
    """At 3, where the risk is .5 and the told cut, which falls from 1 on, is below 0; a cut may have no swing."""
    beside, one = answer("round 1", 0.5, 0.3), answer("round 2", 0.5, 0.4)
    beside.asked["point"][0], one.asked["point"][0] = (3.0, 0.0, 0.5), (1.0, 0.0, 0.5)
    said = {**one.said, "slope": np.array([[-1.0, 0.0, 0.0]]), "norm_weight": np.array([weight])}
    if minorant is not None:
        offset, steep = minorant
        said |= {
            "minorant_offset": np.array([offset]), "minorant_slope": np.zeros((1, 3)),
            "minorant_norm_weight": np.array([steep]),
        }
    found = contradiction_of([beside, Answer(one.when, one.spec, one.asked, said)])
    assert words in found and bool(found) == bool(words)


def test_which_methods_ask_for_the_risk_that_is_stated() -> None:
    """The list stands there by name, for what checks a proof does not ask what made it."""
    assert OF_THE_STATED_RISK == {name for name, method in METHODS.items() if method.is_robust}


@pytest.mark.parametrize("largest", [1e150, 1.7e308])
def test_true_answers_at_the_largest_weights_there_are_convict_nobody(largest: float) -> None:
    """The risk max(0, w_1 / 2): sums over such weights overflow, and what is no number is no proof."""
    flat, steep = answer("round 1", 0.0, 0.0), answer("round 2", largest / 2, largest / 2)
    flat.asked["point"][:], steep.asked["point"][:] = [[-largest, 0.0, 0.0]], [[largest, 0.0, 0.0]]
    steep.said["slope"][0, 0] = 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        assert contradiction_of([flat, steep]) == contradiction_of([steep, flat]) == ""
