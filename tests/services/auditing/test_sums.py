"""What the sums of a cohort show of a lie, what the opened rounds alone show, and what is none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.cohorts.fixed_point import to_words
from models.problem import REACH, RobustSpec, SiteProblem
from services.auditing import auditor
from services.auditing.auditor import audit
from services.auditing.questions import Question, falsehood
from services.auditing.request import falsehood_of_sums
from services.contracts.errors import InvalidInputError
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import pack_arrays, unpack
from services.masking.commitments import signed
from services.masking.masks import words_from_bytes, words_to_bytes
from tests.attacks.cohort import Cohort
from tests.services.auditing.conftest import LIAR

Make = Callable[..., Cohort]


def test_a_coordinator_that_makes_up_a_sum_is_found_out(cohort: Make) -> None:
    plants = cohort()
    for _ in range(4):
        assert plants.round() == []
    true = plants.rounds[3].total
    plants.rounds[3].total = words_from_bytes(_risk_set(plants, 4, 1))
    assert (plants.rounds[3].total != true).sum() == 1
    told = audit(plants.case(1, 4), plants.files["auditor"])
    assert [(each.site, each.kind) for each in told] == [("", "sum")]
    assert "the sum of round 4 is not that of the plants' answers" in told[0].text


def test_plants_that_agreed_on_no_mask_are_named_and_not_convicted(
    cohort: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plants = cohort()
    assert plants.round() == [] and plants.round() == []
    last = plants.rounds[-1].commitments
    monkeypatch.setattr(auditor, "disagreeing", lambda bound: [("plant-1", "plant-3")] if bound == last else [])
    told = audit(plants.case(1, 2, every_round=True), plants.files["auditor"], every_round=True)
    assert [(each.site, each.kind) for each in told] == [("", "sum")]
    assert told[0].text == "plant-1 and plant-3 agreed on no mask in round 2"


def test_the_risk_of_more_plants_is_held_to_the_cuts_of_fewer_and_not_the_other_way(cohort: Make) -> None:
    plants = cohort()
    for _ in range(3):
        assert plants.round() == []
    one, other = plants.request(1, 3).rounds
    part = [words for name, words in _words(plants, 3).items() if name in ("plant-1", "plant-2", "plant-3")]
    fewer = other.model_copy(update={
        "answered": ("plant-1", "plant-2", "plant-3"), "total": words_to_bytes(np.add.reduce(part)),
    })
    assert not falsehood_of_sums((one, fewer)) and not falsehood_of_sums((fewer, one))
    low = one.model_copy(update={"total": words_to_bytes(_lowered(plants, plants.rounds[0].total))})
    assert not falsehood_of_sums((low,) * 2), "alone it is the risk of other rows"
    assert "lies below" in falsehood_of_sums((low, fewer)) and "lies below" in falsehood_of_sums((fewer, low))
    first = [words for name, words in _words(plants, 1).items() if name != "plant-4"]
    fewer_low = low.model_copy(update={
        "answered": ("plant-1", "plant-2", "plant-3"), "total": words_to_bytes(_lowered(plants, np.add.reduce(first))),
    })
    assert not falsehood_of_sums((fewer_low, other)) and not falsehood_of_sums((other, fewer_low))


SHAPES: dict[str, tuple[int, ...]] = {"risk": (1,), "cut_height": (1,), "slope": (1, 3), "norm_weight": (1,)}
POINT = np.array([[1.0, -2.0, 0.5]])


def told(number: int, risk: float, height: float, point: Any = POINT) -> tuple[Question, Any]:
    """A round's question, and words that tell a risk and a flat cut."""
    said = {"risk": [risk], "cut_height": [height], "slope": [[0.0] * 3], "norm_weight": [0.0]}
    words = to_words({name: np.array(each) for name, each in said.items()}, 1.0, POINT)
    return Question("ab" * 16, "c" * 64, number, TrainingSpec(), SHAPES, point), words


def false(*rounds: tuple[Question, Any]) -> str:
    return falsehood([question for question, _ in rounds], [words for _, words in rounds])


def test_a_risk_below_zero_is_refuted_by_itself() -> None:
    assert "below 0" in false(told(1, -0.25, -0.25))
    assert "below 0" in false(told(1, 0.25, 0.25), told(2, -0.25, -0.25))
    assert not false(told(1, 0.0, 0.0))


def test_of_points_beyond_what_the_words_resolve_nothing_is_refuted() -> None:
    far = told(2, 0.9, 0.9, POINT * REACH)
    assert "lies below" in false(told(1, 0.46, 0.46), told(2, 0.9, 0.9, POINT / 2))
    assert not false(told(1, 0.46, 0.46), far) and not false(far, told(1, -0.25, -0.25))


@pytest.mark.parametrize("change", [
    {"kind": "ballast.sum-question/2"}, {"shapes": {"risk": [2]}}, {"shapes": {"slope": [1, 3]}}, {"shapes": []},
    {"transport_norm": "l7"}, {"fit_intercept": None}, {"round": "first"},
], ids=str)
def test_what_is_no_question_of_a_cohort_is_said_to_be_none(change: dict[str, Any]) -> None:
    question = told(3, 0.5, 0.5)[0]
    read = Question.read(question.frame())
    assert (read.frame(), read.round) == (question.frame(), 3)
    frame = unpack(question.frame())
    header = {name: value for name, value in frame.header.items() if name != "arrays"}
    for changed in (pack_arrays(header | change, frame.arrays), pack_arrays(header, {"points": POINT * np.nan}),
                    pack_arrays(header, {"points": POINT[0]}), pack_arrays(header, {}), b""):
        with pytest.raises(InvalidInputError, match="no question to a cohort"):
            Question.read(changed)


def test_a_plant_that_tells_a_point_from_above_as_its_cut_allows_is_no_liar_and_beyond_is() -> None:
    """A risk of .46: told exactly once, and again beside a looser cut; too high by up to what that is too low by."""
    assert not false(told(1, 0.46, 0.46), told(2, 0.51, 0.4))
    assert "its risk at one point" in false(told(1, 0.46, 0.46), told(2, 0.53, 0.4))
    assert "its risk at one point" in false(told(1, 0.53, 0.4), told(2, 0.46, 0.46))


def _lowered(plants: Cohort, words: Any) -> Any:
    """Words of round 1 with a risk of almost nothing, and cuts far below."""
    shapes, found = plants.rounds[0].question.shapes, words.copy()
    start = 0
    for name in sorted(shapes):
        size = int(np.prod(shapes[name]))
        if name == "risk":
            found[start] = 1
        elif name in ("cut_height", "minorant_offset"):
            found[start : start + size] -= np.uint64(2**45)
        start += size
    return found


def _words(plants: Cohort, number: int) -> dict[str, Any]:
    return {
        name: words_from_bytes(each._kept[number][2].words) for name, each in plants.committers.items()
    }


def _risk_set(plants: Cohort, number: int, value: int) -> bytes:
    """The sum of a round with a risk of almost nothing."""
    summed = plants.rounds[number - 1]
    shapes = summed.question.shapes
    names = sorted(shapes)
    start = sum(int(np.prod(shapes[name])) for name in names[: names.index("risk")])
    words = summed.total.copy()
    words[start] = value
    return words_to_bytes(words)


def copying(number: int, said: dict[str, Any], plants: Any) -> dict[str, Any]:
    """What plant-3 says."""
    return dict(plants.now_of("plant-3", said))


def test_an_audit_of_every_round_finds_what_no_sum_shows(cohort: Make) -> None:
    plants = cohort(liar=LIAR, lie=copying)
    while not plants.done:
        assert plants.round() == [], "a sum with a copy is a sum of convex risks"
    (found,) = plants.final_audit()
    assert found.kind == "copied" and found.site in (LIAR, "plant-3") and "lot leaves this one out" in found.text
    honest = cohort()
    while not honest.done:
        assert honest.round() == []
    assert [(each.site, each.kind) for each in honest.final_audit()] == [("", "nobody")]


def test_plants_whose_rows_give_no_slope_are_no_copies(tmp_path: Path) -> None:
    """All rows well classified at every point asked: what is left is the ball's part, alike for all."""
    rows = {f"plant-{g}": np.vstack([np.full((8, 3), 0.02 * g), np.full((8, 3), 1 - 0.02 * g)]) for g in range(1, 5)}
    labels = np.repeat([-1.0, 1.0], 8)
    plants = Cohort(
        {name: SiteProblem(each, labels, RobustSpec(1e-3, 1.0)) for name, each in rows.items()}, tmp_path, gap=1e-8
    )
    while not plants.done and len(plants.rounds) < 15:
        assert plants.round() == []
    assert [each.kind for each in plants.final_audit()] == ["nobody"]


def test_a_plant_that_masks_other_words_than_it_commits_to_is_convicted(
    cohort: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its opening is honest, and would pass were the masks not opened with it."""
    plants = cohort(liar=LIAR, lie=lambda number, said, _: said)
    committer = plants.committers[LIAR]
    honest_answer = committer.answer

    def answer(delivery: Any, words: Any, question: str) -> Any:
        masked, bound = honest_answer(delivery, words, question)
        kept, bound, opening = committer._kept[delivery.round]
        shifted = words_from_bytes(kept.words).copy()
        shifted[-2:] -= np.uint64(2**49)
        other = kept.model_copy(update={"words": words_to_bytes(shifted)})
        false = signed(
            bound.model_copy(update={"masked": hashlib.sha256(other.words).hexdigest()}), plants.signers[LIAR]
        )
        committer._kept[delivery.round] = other, false, opening
        return (other, false) if delivery.round > 1 else (masked, bound)

    monkeypatch.setattr(committer, "answer", answer)
    found: list[Any] = []
    while not found and not plants.done and len(plants.rounds) < 20:
        found = plants.round()
    assert [(each.site, each.kind) for each in found] == [(LIAR, "misfit")]
    assert "masked other words" in found[0].text
