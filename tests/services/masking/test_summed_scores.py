"""Scores of a cohort from the sum of its plants' words: means by share, counts whole, the risk never too small."""

from __future__ import annotations

import numpy as np
import pytest

from services.masking.scores import score_words, summed_scores

SHARES = (0.25, 0.75)
RISKS = (np.array([0.1, 0.7]), np.array([0.3, 1 / 3]))
PLANTS = tuple(
    {"risk": risk, "loss": np.array(loss), "n_test": np.array(float(n)), "confusion": np.array([[float(n), 0.0]])}
    for risk, loss, n in zip(RISKS, (1.0, 3.0), (7, 11), strict=True)
)


def test_risk_and_loss_go_by_share_and_counts_as_they_are() -> None:
    words = [score_words(plant, share) for plant, share in zip(PLANTS, SHARES, strict=True)]
    assert {each.dtype for each in words} == {np.dtype(np.uint64)} and len({len(each) for each in words}) == 1
    found = summed_scores(words[0] + words[1], {name: value.shape for name, value in PLANTS[0].items()})
    mean = SHARES[0] * RISKS[0] + SHARES[1] * RISKS[1]
    assert found.keys() == PLANTS[0].keys()
    np.testing.assert_allclose(found["risk"], mean, atol=1e-6)
    assert (found["risk"] >= mean).all(), "a cohort's risk is rounded up"
    assert found["loss"] == pytest.approx(2.5, abs=1e-6)
    assert found["n_test"] == 18.0 and found["confusion"].tolist() == [[18.0, 0.0]]


def test_an_answer_of_counts_alone_has_no_part_by_share() -> None:
    counts = [{"n_test": np.array(float(n)), "covered": np.array(float(n - 1))} for n in (3, 5)]
    total = sum((score_words(each, share) for each, share in zip(counts, SHARES, strict=True)), np.zeros(1, np.uint64))
    found = summed_scores(total, {"n_test": (), "covered": ()})
    assert (float(found["n_test"]), float(found["covered"])) == (8.0, 6.0)
