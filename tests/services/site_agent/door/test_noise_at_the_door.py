"""Noise on sums at a plant's door: what is in the words, what the plant charges itself, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.cohorts.accountant import rho_of
from models.cohorts.noise import BITS, METHOD, NoiseTerms, noisy_answer, sigmas
from services.contracts.problems.lift import FourierLiftSpec
from services.contracts.problems.noise import CohortNoise
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.masking import MaskedWords, MaskKeys
from services.masking.unmasking import deliveries
from services.site_agent.answers.local_solve import site_problems
from services.site_agent.door import noisy_round
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.noise_account import NoiseRecord
from services.site_agent.vault.records.told_models import PROBLEMS
from services.site_agent.vault.records.version_rows import VersionRows
from tests.services.site_agent.noisy_party import POINT, NoisyParty, words
from tests.services.site_agent.party import PEERS, RUN


@pytest.mark.parametrize("share", [0.25, 0.4])
def test_the_words_are_the_answer_with_noise_of_the_stated_size(
    new_noisy_party: Callable[..., NoisyParty], share: float
) -> None:
    """By the plant's share of the sum, whatever that of the others."""
    party = new_noisy_party()
    shares = {"plant-1": share, **dict.fromkeys(PEERS, (1.0 - share) / 3)}
    party.cohort = party.cohort.model_copy(update={"shares": shares})
    party.renew(1, CohortNoise(row_share=0.02, honest=2, rho=50.0))
    party.agree()
    train = Vault(party.site.source, party.site.asset_type).current().train
    spec = TrainingSpec()
    problem = site_problems(spec, train.features, train.classes, party.site.asset_type)[0]
    true = noisy_answer(problem, POINT["point"][0])
    centre = share * np.concatenate([true[name].ravel() for name in ("risk", "offset", "slope")])
    terms = NoiseTerms(0.02, 2, 50.0)
    scale = sigmas(POINT["point"][0], 3, problem.spec.loss, terms)
    each = np.array([scale["risk"], scale["offset"], *[scale["slope"]] * 4])
    found = np.array([words(party, number) for number in range(1, 41)])
    off = (found - np.ldexp(centre, BITS)) / each
    assert np.abs(off).max() < 7 and np.abs(off.mean(axis=0)).max() < 1.2
    assert 0.7 < float(off.std()) < 1.3, "40 x 6 numbers of variance 1"


def test_every_answer_is_charged_and_a_repeat_is_the_same_answer(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party()
    party.agree()
    given = deliveries(party.cohort, 1, party.prepare(1))["plant-1"]
    first = party.ask("round", given, round=1, arrays=POINT)
    again = party.ask("round", given, round=1, arrays=POINT)
    assert isinstance(first.masking, MaskedWords) and first.masking == again.masking
    assert party.told() == pytest.approx(0.5)
    other = {"point": POINT["point"] + 0.5}
    assert party.ask("round", given, round=1, arrays=other).code == "masks_refused"
    words(party, 2)
    assert party.told() == pytest.approx(1.5), "what was drawn is charged, left it or not"


def test_new_masks_of_the_same_round_have_new_noise_and_are_charged(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party()
    party.agree()
    before = words(party, 1)
    party.renew(2)
    party.agree()
    after = words(party, 1)
    assert (before != after).all() and party.told() == pytest.approx(1.0)


def test_the_account_outlives_the_agent_and_the_limit_is_kept(
    new_noisy_party: Callable[..., NoisyParty], tmp_path: Path
) -> None:
    limit = 3.0
    party = new_noisy_party(noise_epsilon=limit)
    most = int(rho_of(limit, 1e-6) / 0.02)
    party.renew(3, CohortNoise(row_share=0.05, honest=2, rho=0.02))
    party.agree()
    for number in range(1, most + 1):
        words(party, number)
    assert party.told() == pytest.approx(0.02 * most)
    given = deliveries(party.cohort, most + 1, party.prepare(most + 1))["plant-1"]
    assert party.ask("round", given, round=most + 1, arrays=POINT).code == "noise_limit"
    assert party.told() == pytest.approx(0.02 * most), "what is refused is not charged"
    file = tmp_path / "account.sqlite"
    for number in (1, 2):
        record = NoiseRecord(file)
        assert record.charge("d", 0.25, 2, 100.0, 1e-6).rho == pytest.approx(0.5 * number)
        record.close()
    assert NoiseRecord(file).account("other").rho == 0.0 and file.stat().st_mode & 0o777 == 0o600


def test_terms_that_hide_too_little_are_refused(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party()
    party.renew(4, CohortNoise(row_share=0.0001, honest=2, rho=0.5))
    party.agree()
    given = deliveries(party.cohort, 1, party.prepare(1))["plant-1"]
    assert party.ask("round", given, round=1, arrays=POINT).code == "noise_refused", "a row counts for more"
    assert party.ask("round", given, round=1, arrays=POINT, method="cohort-bundle").code == "noise_refused"
    boxed = TrainingSpec(support="sensor_ranges")
    assert party.ask("round", given, round=1, arrays=POINT, spec=boxed).code == "noise_refused"
    assert party.ask("round", given, round=1, arrays={"point": np.zeros((1, 3))}).code == "bad_task"
    assert party.told() == 0.0
    with pytest.raises(ValueError, match="the noise of 4 plants must be in every sum, and 3 answers make one"):
        party.renew(5, CohortNoise(row_share=0.05, honest=4, rho=0.5))


def test_a_limit_makes_rounds_without_noise_impossible(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party(noise_epsilon=5.0, reveal=("sums", "each site"))
    party.renew(6, None)
    assert party.ask("agree", party.cohort).code == "noise_limit"
    assert party.site.refusal_code("round", method=METHOD, arrays=POINT) == "noise_limit"
    assert party.ask("prepare", MaskKeys(run_id=RUN, round=1, keys=party.keys)).code == "masks_missing"


def test_a_noisy_answer_isolates_nothing(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party(exposure_limit=0.0, leverage_limit=0.0, allow_unaccounted=False)
    party.agree()
    words(party, 1)
    figures = party.site.door._gate._exposure(Vault(party.site.source, party.site.asset_type).current().train).figures()
    assert (figures.vectors, figures.by_differences, figures.leveraged) == (0, 0, 0)


def asked_once(party: NoisyParty, number: int, **changes: Any) -> Any:
    given = deliveries(party.cohort, number, party.prepare(number))["plant-1"]
    return party.ask("round", given, round=number, **({"arrays": POINT} | changes))


@pytest.mark.parametrize(
    ("policy", "asked", "code"),
    [
        ({}, {"arrays": {"point": 1e6 * POINT["point"]}}, "question_refused"),
        ({"max_operations": 1.0}, {}, "work_limit"),
        (
            {"lift_limit": 0.0}, {"spec": TrainingSpec(lift=FourierLiftSpec(components=8, bandwidth=1.0))},
            "exposure_limit",
        ),
    ],
)
def test_noise_is_no_way_round_what_else_a_plant_refuses(
    new_noisy_party: Callable[..., NoisyParty], policy: dict[str, Any], asked: dict[str, Any], code: str
) -> None:
    party = new_noisy_party(**policy)
    party.agree()
    assert asked_once(party, 1, **asked).code == code
    assert party.told() == 0.0, "nothing of what is refused is charged"


def test_a_run_with_noise_asks_about_as_many_problems_as_another(new_noisy_party: Callable[..., NoisyParty]) -> None:
    party = new_noisy_party()
    party.agree()
    for number in range(1, PROBLEMS + 1):
        said = asked_once(party, number, spec=TrainingSpec(label_flip_cost=1.0 + number))
        assert isinstance(said.masking, MaskedWords)
    charged = party.told()
    assert asked_once(party, PROBLEMS + 1).code == "question_refused" and party.told() == charged


def test_an_answer_about_several_planes_is_charged_for_each(
    new_noisy_party: Callable[..., NoisyParty], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three classes have three planes, and each of them tells of every row."""
    party, record = new_noisy_party(), NoiseRecord(None)
    train = Vault(party.site.source, party.site.asset_type).current().train
    answers = noisy_round.NoisyAnswers(record, VersionRows(None, b""), SitePolicy())
    problems = site_problems(TrainingSpec(), train.features, train.classes, party.site.asset_type) * 3
    monkeypatch.setattr(noisy_round, "encode", lambda task: task.run_id.encode())
    points = {"point": np.repeat(POINT["point"], 3, axis=0)}
    task: Any = SimpleNamespace(run_id=RUN, site_id="plant-1", method=METHOD, arrays=points)
    assert answers.words(task, party.cohort, problems, "digest", train).shape == (3 * 6,)
    assert record.account("digest").rho == pytest.approx(3 * 0.5)


def test_the_answers_of_the_last_runs_are_kept_and_the_run_of_longest_ago_is_forgotten(
    new_noisy_party: Callable[..., NoisyParty], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise that was drawn anew for the same question would be averaged away, and be charged again."""
    party, charged = new_noisy_party(), list[str]()
    answers = noisy_round.NoisyAnswers(NoiseRecord(None), VersionRows(None, b""), SitePolicy())
    rows: Any = None
    monkeypatch.setattr(noisy_round, "encode", lambda task: task.run_id.encode())
    monkeypatch.setattr(answers, "_drawn", lambda task, *_: np.random.default_rng().integers(2**40, size=6))
    monkeypatch.setattr(answers, "_charge", lambda *_: charged.append("charged"))

    def told(run: int) -> Any:
        task: Any = SimpleNamespace(run_id=f"{run:032x}")
        return answers.words(task, party.cohort, [], "digest", rows)

    first = told(0)
    later = [told(run) for run in range(1, noisy_round._RUNS_KEPT + 1)]
    assert len(charged) == noisy_round._RUNS_KEPT + 1
    for run, before in enumerate(later, start=1):
        np.testing.assert_array_equal(told(run), before)
    assert len(charged) == noisy_round._RUNS_KEPT + 1, "a repeat costs nothing"
    assert (told(0) != first).any() and len(charged) == noisy_round._RUNS_KEPT + 2
