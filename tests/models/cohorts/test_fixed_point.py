"""Sums of whole numbers: exact, and every cut below what it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from models.basics import FloatArray, ProblemError
from models.cohorts.fixed_point import Words, bits_of, from_words, to_words, word_count
from models.geometry.norms import dual_norm
from models.methods.site_answers import ProxCutSite
from models.problem import REACH
from models.worst_case.risk import RiskCut

LOSSES = ("hinge", "smooth_hinge", "logistic", "huber", "pinball")
SHARES = st.sampled_from([1.0, 0.5, 1 / 3, 0.1, 1e-3, 2.0**-30, 1e-12])


def exact(values: Any) -> FloatArray:
    """Long doubles, 64 bits of mantissa, so that no rounding of the check itself counts."""
    return np.asarray(values, dtype=np.longdouble)


def minorant_at(offset: Any, slope: Any, norm_weight: Any, swing: Any, u: FloatArray, norm: float) -> Any:
    at = exact(offset) + exact(slope) @ exact(u) + exact(norm_weight) * norm
    return at + (0.0 if swing is None else exact(swing) @ exact(np.abs(u[: swing.shape[0]])))


@settings(max_examples=150)
@given(st.data())
def test_every_rounded_cut_is_below_the_cut_within_the_reach(
    loss_problems: Callable[..., SearchStrategy[Any]], data: st.DataObject
) -> None:
    """At random weights up to the reach, and at the corner that the rounding of the slope points to."""
    problem, point = data.draw(st.one_of(loss_problems(LOSSES, ("free",)), loss_problems(("hinge",), ("box",))))
    share, p, norm = data.draw(SHARES), problem.features.shape[1], problem.spec.transport_norm
    asked = {"point": point, "centre": point + 0.1, "penalty": np.array(data.draw(st.sampled_from([0.0, 0.3])))}
    answer = ProxCutSite().answer(problem, asked, {})
    shapes = {name: array.shape for name, array in answer.items()}
    assume(all(float(np.abs(array).max(initial=0.0)) <= 2.0 ** (62 - bits_of(name)) for name, array in answer.items()))
    told = from_words(to_words(answer, share, point), shapes)
    assert float(told["risk"]) >= share * float(answer["risk"])
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for prefix in ("", "minorant_"):
        height = prefix + ("offset" if prefix else "cut_height")
        off = told[prefix + "slope"] - share * answer[prefix + "slope"]
        far = [np.where(off >= 0, REACH, -REACH), -np.where(off >= 0, REACH, -REACH)]
        near = [draw.uniform(-1, 1, point.shape) * 10.0 ** draw.uniform(-3, 3.6) for _ in range(4)]
        for u in [*far, *near, np.zeros_like(point), point]:
            there, here = float(dual_norm(u[:p], norm)), float(dual_norm(point[:p], norm))
            values = []
            for cut, by in ((answer, share), (told, 1.0)):
                slope, weight = (exact(by) * exact(cut[prefix + name]) for name in ("slope", "norm_weight"))
                swing = exact(by) * exact(cut[prefix + "swing"]) if prefix + "swing" in cut else None
                value = minorant_at(exact(by) * exact(cut[height]), slope, weight, swing, u, there)
                values.append(value if prefix else value - minorant_at(0.0, slope, weight, swing, point, here))
            size = float(np.abs(answer[prefix + "slope"]) @ np.abs(u)) + 1.0
            assert values[1] <= values[0] + 1e-18 * size * REACH


@pytest.mark.parametrize("steep", [1e-3, 200.0])
def test_a_cut_of_many_weights_told_at_a_point_far_out_is_below_itself_at_the_other_end(steep: float) -> None:
    """A slope is off by its grid, or of many digits by its product with the share: both count from the point on.

    What a norm weight or a swing loses had been taken off at the point.
    """
    draw, dimension, share = np.random.default_rng(1), 400, 1 / 3
    far = draw.uniform(3500.0, REACH, dimension)
    answer = {"cut_height": np.array(2.0), "slope": steep * draw.normal(size=dimension), "norm_weight": np.array(0.0)}
    shapes = {name: array.shape for name, array in answer.items()}
    off = exact(from_words(to_words(answer, share, far), shapes)["slope"]) - exact(share) * exact(answer["slope"])
    point = np.where(off > 0, -far, far)
    told = from_words(to_words(answer, share, point), shapes)
    assert told["cut_height"] + off @ exact(np.sign(off) * REACH - point) <= exact(share) * 2.0

    level = {"cut_height": np.array(2.0), "slope": np.zeros(dimension), "norm_weight": np.array(0.3)}
    swinging = {**level, "norm_weight": np.array(0.0), "swing": draw.uniform(0.1, 0.3, dimension)}
    for cut in (level, swinging):
        told = from_words(to_words(cut, share, point), {name: array.shape for name, array in cut.items()})
        less = {name: exact(share) * exact(cut[name]) - exact(told[name]) for name in cut.keys() - {"slope"}}
        at_zero = less["norm_weight"] * np.abs(point).sum() + less.get("swing", np.zeros(dimension)) @ exact(abs(point))
        assert 0 < at_zero <= less["cut_height"]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 200))
def test_the_sum_of_words_is_the_sum_within_the_grid(seed: int, plants: int) -> None:
    """In whatever order; risks from above, heights from below, and no further off than stated."""
    draw, dimension = np.random.default_rng(seed), 6
    shares = draw.dirichlet(np.ones(plants))
    shapes: dict[str, tuple[int, ...]] = {
        "risk": (2,), "cut_height": (2,), "slope": (2, dimension), "norm_weight": (2,), "local_point": (dimension,),
    }
    points = draw.normal(size=(2, dimension))
    answers: list[dict[str, FloatArray]] = [
        {name: draw.uniform(-1, 1, shape) * 10.0 ** draw.integers(-8, 3) for name, shape in shapes.items()}
        for _ in range(plants)
    ]
    words: list[Words] = [to_words(each, share, points) for each, share in zip(answers, shares, strict=True)]
    assert {each.shape for each in words} == {(word_count(shapes),)}
    total, told_by = np.add.reduce(words), list(zip(answers, shares, strict=True))
    np.testing.assert_array_equal(total, np.add.reduce([words[k] for k in draw.permutation(plants)]))
    told = from_words(total, shapes)
    for name in shapes:
        true = sum(share * exact(each[name]) for each, share in told_by)
        grid = 2.0 ** -bits_of(name)
        rounding = 1e-15 * max(float(np.abs(each[name]).max()) for each in answers)
        if name == "cut_height":
            steepest = sum(share * np.abs(each["slope"]).sum(axis=-1) for each, share in told_by)
            lost = plants * (2.0**-40 + dimension * 2.0**-53 * (REACH + 5)) + 2.0**-52 * steepest * (REACH + 5)
            lost = lost + plants * 2.0**-51 * np.abs(points).sum(axis=-1) + rounding
            assert (told[name] <= true).all() and (told[name] >= true - lost).all()
        elif name == "risk":
            assert (told[name] >= true).all() and (told[name] <= true + plants * grid + rounding).all()
        else:
            assert (np.abs(told[name] - true) <= plants * grid + rounding).all()


def test_a_cut_as_wide_as_the_problem_keeps_its_digits() -> None:
    """What rounding costs a cohort of four with 30 features is below a certified 1e-6 of a small risk."""
    draw = np.random.default_rng(1)
    cut = RiskCut(0.05, 0.05, draw.normal(size=30), 0.001)
    answer = {"risk": np.array(cut.risk), "cut_height": np.array(cut.height), "slope": cut.slope,
              "norm_weight": np.array(cut.norm_weight)}
    shapes = {name: array.shape for name, array in answer.items()}
    told = from_words(np.add.reduce([to_words(answer, 0.25, np.ones(30)) for _ in range(4)]), shapes)
    assert 0 < cut.height - float(told["cut_height"]) < 1e-10


@pytest.mark.parametrize(("name", "limit"), [("risk", "4.1943e+06"), ("slope", "1024"), ("local_point", "4.1943e+06")])
@pytest.mark.parametrize("value", [1.0001, np.inf, np.nan])
def test_values_too_large_for_the_sum_are_refused_at_the_site(name: str, limit: str, value: float) -> None:
    answer = {"risk": np.array(1.0), "cut_height": np.array(1.0), "slope": np.zeros(3), "norm_weight": np.array(0.0),
              "local_point": np.zeros(3)}
    largest = 2.0**22 if limit != "1024" else 2.0**10
    full = {**answer, name: np.full_like(answer[name], -largest)}
    to_words(full, 1.0, np.zeros(3))
    with pytest.raises(ProblemError) as refusal:
        to_words({**answer, name: np.full_like(answer[name], -value * largest)}, 1e-6, np.zeros(3))
    assert f"the answer's {name} holds" in str(refusal.value) and f"no more than {limit.split('e')[0][:4]}" in str(
        refusal.value
    ) and "\n" not in str(refusal.value)


def test_the_largest_values_of_a_cohort_do_not_overflow() -> None:
    answer = {"risk": np.array(2.0**22), "local_point": np.array([-(2.0**22), 2.0**22])}
    shapes = {"risk": (), "local_point": (2,)}
    for count in (1, 3, 7, 200):
        told = from_words(np.add.reduce([to_words(answer, 1 / count, np.zeros(2)) for _ in range(count)]), shapes)
        for name, sign in itertools.product(shapes, (1.0,)):
            np.testing.assert_allclose(told[name], sign * answer[name], rtol=1e-9)


def test_heads_go_in_one_vector() -> None:
    """With a leading axis of heads, and of questions, as each of them alone."""
    draw = np.random.default_rng(2)
    points, shapes = draw.normal(size=(3, 2, 5)), {
        "risk": (3, 2), "cut_height": (3, 2), "slope": (3, 2, 5), "norm_weight": (3, 2), "swing": (3, 2, 4),
        "minorant_offset": (3, 2), "minorant_slope": (3, 2, 5), "minorant_norm_weight": (3, 2),
    }
    answer: dict[str, FloatArray] = {name: np.abs(draw.normal(size=shape)) for name, shape in shapes.items()}
    told = from_words(to_words(answer, 0.3, points), shapes)
    for k, q in itertools.product(range(3), range(2)):
        one = {name: array[k, q] for name, array in answer.items()}
        alone = from_words(to_words(one, 0.3, points[k, q]), {name: array.shape for name, array in one.items()})
        for name in shapes:
            np.testing.assert_array_equal(told[name][k, q], alone[name])


def test_a_sum_of_another_length_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"a sum of 3 words was due, got \(2,\)"):
        from_words(np.zeros(2, dtype=np.uint64), {"risk": (), "local_point": (2,)})
