"""Counts of answers by version add up, whatever way they came."""

from __future__ import annotations

from services.predictor.predictor import Predictor
from services.predictor.tally import Tally
from tests.services.predictor.conftest import MakeVersion


def test_two_versions_count_in_the_tally_that_they_were_given(make_version: MakeVersion) -> None:
    tally, sample = Tally(), {"flow_mean": 60.0}
    for number, times in (("1", 2), ("2", 3)):
        predictor = Predictor(make_version([[1.0, 0.0]], version=number), tally=tally, abstain_below_radius=100.0)
        predictor.diagnose([sample] * times)
        predictor.class_scores(predictor.read([sample]))
    assert tally.answers() == {("triplex-pump", "1", None): 3, ("triplex-pump", "2", None): 4}
    assert tally.abstentions() == {("triplex-pump", "1"): 2, ("triplex-pump", "2"): 3}


def test_answers_and_abstentions_add_up_by_model_version_and_size() -> None:
    tally = Tally()
    tally.add("pump", "1", [1, 2, 1, None], abstained=2)
    tally.add("pump", "1", iter([1, 0]), abstained=1)
    tally.add("pump", "2", [], abstained=0)
    tally.add("valve", "1", [None])
    assert tally.answers() == {
        ("pump", "1", 1): 3, ("pump", "1", 2): 1, ("pump", "1", None): 1, ("pump", "1", 0): 1, ("valve", "1", None): 1,
    }
    assert tally.abstentions() == {("pump", "1"): 3, ("pump", "2"): 0, ("valve", "1"): 0}


def test_what_was_given_out_does_not_change_afterwards() -> None:
    tally = Tally()
    tally.add("pump", "1", [1], abstained=1)
    before = tally.answers(), tally.abstentions()
    tally.add("pump", "1", [1], abstained=1)
    assert before == ({("pump", "1", 1): 1}, {("pump", "1"): 1})
