"""Counts of answers by version add up, whatever way they came."""

from __future__ import annotations

from services.predictor.tally import Tally


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
