"""What may leave by what it and earlier answers isolate: limits, budgets, the record, the words."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.methods.row_account import RowAccount
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records import exposure_record
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.exposure_words import exposure_lines, exposure_summary
from services.site_agent.vault.records.version_exposure import data_digest
from tests.oracles.isolated_rows import activity, searched

RUN, NEXT_RUN = "a" * 32, "b" * 32
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def part(n_rows: int = 40, seed: int = 0) -> Part:
    rng = np.random.default_rng(seed)
    return Part(rng.uniform(size=(n_rows, 3)), rng.integers(0, 2, n_rows), np.full(n_rows, np.nan))


def told(rows: np.ndarray) -> RowAccount:
    return RowAccount(tuple(rows))


def gate(path: Path | None, now: datetime = NOON, **limits: float | bool | None) -> ExposureGate:
    allowed: Any = {"exposure_limit": 1.0} | limits
    return ExposureGate(ExposureRecord(path), SitePolicy(**allowed), lambda: now)


def everyone(train: Part) -> np.ndarray:
    return np.ones(len(train), dtype=bool)


def test_the_record_survives_a_restart_and_belongs_to_the_data(tmp_path: Path) -> None:
    train, path = part(), tmp_path / "exposure.sqlite"
    vectors = activity(10, 40, 3)
    first = gate(path)
    for vector in vectors[:5]:
        first.admit(train, everyone(train), RUN, told(vector[None]))
    again, whole = gate(path), gate(None)
    figures = [again.admit(train, everyone(train), NEXT_RUN, told(vector[None])) for vector in vectors[5:]]
    straight = [whole.admit(train, everyone(train), RUN, told(vector[None])) for vector in vectors]
    assert figures == straight[5:]
    assert figures[-1].by_differences == len(searched(vectors)[1]) > 0
    assert path.stat().st_mode & 0o777 == 0o600
    other = part(seed=1)
    assert data_digest(other) != data_digest(train)
    assert again.admit(other, everyone(other), RUN, told(vectors[:1])).vectors == 1
    assert again.admit(train, everyone(train), RUN, told(vectors[:1])) == figures[-1], "the earlier rows are remembered"


def test_a_vector_that_was_told_again_is_one_of_the_last_after_a_restart_too(tmp_path: Path) -> None:
    train, path, draw = part(60), tmp_path / "exposure.sqlite", np.random.default_rng(7)
    first, *others, second, third = draw.random((43, 60)) / 60
    fourth = second + third - first
    fourth[5] += 0.5 / 60
    door = gate(path)
    for vector in (first, *others, second, third, first):
        figures = door.admit(train, everyone(train), RUN, told(vector[None]))
    assert (figures.vectors, figures.by_differences) == (43, 0), "the first counts once"
    assert gate(path).admit(train, everyone(train), RUN, told(fourth[None])).by_differences == 1


def test_what_was_admitted_is_there_after_the_process_died_and_for_who_looks(tmp_path: Path) -> None:
    train, path, left = part(), tmp_path / "plant" / "exposure.sqlite", tmp_path / "left"
    path.parent.mkdir()
    record = ExposureRecord(path)
    door = ExposureGate(record, SitePolicy(exposure_limit=1.0), lambda: NOON)
    for vector in activity(10, 40, 3)[:4]:
        figures = door.admit(train, everyone(train), RUN, told(vector[None]))
        assert exposure_summary(path, SitePolicy())["vectors"] == figures.vectors, "while the agent runs"
    shutil.copytree(path.parent, left)  # as a process that is killed leaves it
    assert {each.stat().st_mode & 0o777 for each in left.iterdir()} == {0o600}
    assert gate(left / path.name).figures(train) == figures
    reader = ExposureRecord(path, looking=True)
    reader.close()
    record.close()
    assert exposure_summary(path, SitePolicy())["vectors"] == figures.vectors, "and after it has ended"
    assert [each.name for each in path.parent.iterdir()] == [path.name], "the file by itself is the whole record"
    assert gate(path).figures(train) == figures


def test_past_the_limit_nothing_leaves_and_nothing_is_recorded(tmp_path: Path) -> None:
    train, path = part(), tmp_path / "exposure.sqlite"
    steps = np.tril(np.ones((40, 40))) / 40
    door = gate(path, exposure_limit=0.25)
    for number in range(10):
        assert door.admit(train, everyone(train), RUN, told(steps[number][None])).by_differences == number + 1
    for _ in range(2):
        with pytest.raises(Refusal, match=r"isolate 11 of 40 rows, the policy allows a share of 0\.25") as caught:
            door.admit(train, everyone(train), RUN, told(steps[10][None]))
        assert caught.value.refusal_code == "exposure_limit"
    assert door.admit(train, everyone(train), RUN, told(steps[:3])).by_differences == 10, "a repeat may always leave"
    assert gate(path, exposure_limit=0.25).admit(train, everyone(train), RUN, told(steps[:1])).by_differences == 10


def test_leverage_has_a_limit_of_its_own() -> None:
    train, door = part(), gate(None, leverage_limit=0.0)
    rng = np.random.default_rng(0)
    with pytest.raises(Refusal, match="combinations of all answers would isolate 4 of 40 rows"):
        for _ in range(40):
            figures = door.admit(train, everyone(train), RUN, told(rng.uniform(size=(1, 40))))
    assert (figures.by_differences, figures.leveraged, figures.vectors) == (0, 0, 38)
    assert 0.9 < figures.leverage < 1


def test_rows_that_a_task_does_not_learn_from_are_not_exposed_by_it() -> None:
    train, door = part(), gate(None)
    known = np.arange(40) % 2 == 0
    door.admit(train, known, RUN, told(np.ones((1, 20))))
    figures = door.admit(train, ~known, RUN, told(np.ones((1, 20))))
    assert (figures.vectors, figures.rows, figures.by_differences) == (2, 40, 0), "other rows, another vector"


def test_answers_have_a_budget_by_the_version_of_the_data_and_runs_of_a_day_one_for_all() -> None:
    train, other = part(), part(seed=1)
    record = ExposureRecord(None)

    def door(hours: float) -> ExposureGate:
        policy = SitePolicy(max_answers_per_run=2, max_runs_per_day=1)
        return ExposureGate(record, policy, lambda: NOON + timedelta(hours=hours))

    for _ in range(2):
        door(0).check_budget(train, RUN)
        door(0).admit(train, everyone(train), RUN, RowAccount())
    for hours, rows, run, fits in (
        (1, train, RUN, False), (1, train, NEXT_RUN, False), (1, other, RUN, False), (1, other, NEXT_RUN, False),
        (23.9, train, NEXT_RUN, False),
        (24.1, train, NEXT_RUN, True), (24.1, train, RUN, False), (24.1, other, RUN, True),
    ):
        if fits:
            door(hours).check_budget(rows, run)
        else:
            with pytest.raises(Refusal) as caught:
                door(hours).check_budget(rows, run)
            assert caught.value.refusal_code == "budget_spent"


def test_a_run_is_known_for_thirty_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposure_record, "FORGET_EVERY", 2)
    train, record = part(), ExposureRecord(None)

    def answer(days: float, run: str) -> ExposureGate:
        limits = SitePolicy(max_answers_per_run=1)
        made = ExposureGate(record, limits, lambda: NOON + timedelta(days=days))
        made.admit(train, everyone(train), run, RowAccount())
        return made

    answer(0, RUN)
    for days, run in ((1, "c" * 32), (29.9, "d" * 32)):
        with pytest.raises(Refusal):
            answer(days, run).check_budget(train, RUN)
    answer(30, "e" * 32)
    answer(30.1, "f" * 32).check_budget(train, RUN)


def test_the_words_say_the_figures(tmp_path: Path) -> None:
    path, policy = tmp_path / "exposure.sqlite", SitePolicy(max_runs_per_day=7)
    assert exposure_lines(exposure_summary(path, policy)) == ["Nothing has been answered about the data yet."]
    train, door = part(), gate(path)
    steps = np.tril(np.ones((40, 40))) / 40
    door.admit(train, everyone(train), RUN, RowAccount())
    door.admit(train, everyone(train), RUN, told(steps[:3]))
    summary = exposure_summary(path, policy, NOON + timedelta(hours=1))
    assert (summary["by_pairs"], summary["answers"], summary["runs"], summary["runs_left_today"]) == (3, 2, 1, 6)
    text = "\n".join(exposure_lines(summary))
    for words in ("2 answers in 1 run about the present 40", "3 of 40 rows can be read off exactly", "allows 0.",
                  "leverage of a row over all answers is 1.000; 3 rows", "6 more runs"):
        assert words in text, text
    door.admit(train, everyone(train), RUN, RowAccount((), False))
    text = "\n".join(exposure_lines(exposure_summary(path, policy, NOON + timedelta(hours=1))))
    assert "All 40 rows are counted as told, for 1 answer said more" in text, text
    assert "allow_unaccounted = false" in text
    assert "can be read off exactly" not in text and "leverage of a row" not in text, "which nobody found"


def test_the_words_tell_each_limit_and_what_is_left_of_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, path = part(), tmp_path / "exposure.sqlite"
    for hours, run, answers in ((0.0, RUN, 3), (24.5, NEXT_RUN, 2), (25.0, "c" * 32, 1)):
        door = gate(path, NOON + timedelta(hours=hours))
        for _ in range(answers):
            door.admit(train, everyone(train), run, RowAccount())
    closed: list[ExposureRecord] = []
    close = ExposureRecord.close

    def closes(record: ExposureRecord) -> None:
        closed.append(record)
        close(record)

    monkeypatch.setattr(ExposureRecord, "close", closes)
    now = NOON + timedelta(hours=26)
    for most, left in ((1, 0), (3, 1), (None, None)):
        policy = SitePolicy(max_runs_per_day=most, exposure_limit=0.1, leverage_limit=0.25, max_answers_per_run=9)
        summary = exposure_summary(path, policy, now)
        assert (summary["runs"], summary["runs_today"], summary["runs_left_today"]) == (3, 2, left)
        text = "\n".join(exposure_lines(summary))
        assert "with differences of differences too; the policy allows 4." in text
        assert "could isolate them. The policy allows 10." in text and "answers said more" not in text
        more = "any number of runs a day" if left is None else f"{left} more runs in these 24 hours"
        assert f"Budget: {more}; 9 answers in a run, the most so far 3." in text
    text = "\n".join(exposure_lines(exposure_summary(path, SitePolicy(max_answers_per_run=None), now)))
    assert "; any number of answers in a run." in text
    assert len(closed) == 4, "the record is let go each time"


def test_an_answer_that_says_more_than_its_account_counts_for_every_row_and_needs_a_policy_that_takes_it() -> None:
    train = part()
    for limit in (0.0, 0.5, 0.99):
        with pytest.raises(Refusal, match="all of them count"):
            strict = gate(None, exposure_limit=limit, allow_unaccounted=False)
            strict.admit(train, everyone(train), RUN, RowAccount((), False))
    figures = gate(None, exposure_limit=0.0).admit(train, everyone(train), RUN, RowAccount((), False))
    assert (figures.by_pairs, figures.by_differences, figures.leveraged, figures.unaccounted) == (40, 40, 40, 1)


def test_rows_of_the_same_features_hide_nothing_behind_one_another() -> None:
    train = part()
    train.features[7] = train.features[3]
    door, first, second = gate(None), np.full(40, 0.01), np.full(40, 0.01)
    second[[3, 7]] += 0.01
    door.admit(train, everyone(train), RUN, told(first[None]))
    found = door.admit(train, everyone(train), RUN, told(second[None]))
    assert (found.by_pairs, found.leveraged) == (2, 2)
