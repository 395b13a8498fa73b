"""What the record of a site's answers forgets: the oldest, and nothing that a later answer is still held to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from services.site_agent.vault.isolation.sketches import SKETCH
from services.site_agent.vault.isolation.span import Figures
from services.site_agent.vault.records import exposure_record
from services.site_agent.vault.records.exposure_entries import Addition
from services.site_agent.vault.records.exposure_record import VERSIONS_KEPT, ExposureRecord, directions_kept

RUN, NEXT_RUN = "a" * 32, "b" * 32
ROWS = 4


def day(number: int) -> str:
    return f"2026-01-{number:02d}T12:00:00+00:00"


def answered(
    record: ExposureRecord, digest: str, at: int, *, run: str = RUN, value: float = 0.0, full: bool = False
) -> None:
    """One answer about a version of the data, with one vector; runs of before the first of the month are forgotten."""
    vector = np.full(SKETCH, value)
    figures = Figures(rows=ROWS, vectors=1)
    record.add(digest, run, day(at), day(1), Addition((vector,), (), {}, figures, span_full=full))


def test_the_versions_of_the_data_that_were_answered_about_last_are_kept() -> None:
    record = ExposureRecord(None)
    versions = [f"version-{number}" for number in range(VERSIONS_KEPT + 2)]
    for number, digest in enumerate(versions, 1):
        answered(record, digest, number)
    answered(record, versions[2], 28, run=NEXT_RUN)
    answered(record, "newest", 29)
    kept = [digest for digest in versions if record.stored(digest, ROWS).vectors]
    assert kept == [versions[2], *versions[-VERSIONS_KEPT + 2 :]]
    latest = record.latest()
    assert latest is not None and latest[0] == "newest" and len(record.stored("newest", ROWS).sketches) == 1


def test_of_many_vectors_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposure_record, "SKETCHES_KEPT", 3)
    monkeypatch.setattr(exposure_record, "FORGET_EVERY", 2)
    record = ExposureRecord(None)
    for number in range(9):
        answered(record, "d", 2, value=float(number))
    assert record.stored("d", ROWS).sketches[:, 0].tolist() == [6.0, 7.0, 8.0]


@pytest.mark.parametrize(("n_rows", "kept"), [
    (1, 1), (2000, 2000), (2048, 2048), (2049, 2047), (4096, 1024), (2**22, 1), (2**23, 1),
])
def test_directions_of_many_rows_are_kept_as_far_as_they_fit_into_32_megabytes(n_rows: int, kept: int) -> None:
    assert directions_kept(n_rows) == kept
    assert kept == 1 or 8 * kept * n_rows <= 32 * 2**20


def test_what_a_run_was_told_of_is_forgotten_with_the_run_and_not_before() -> None:
    record = ExposureRecord(None)
    for run, at in ((RUN, "2025-12-01T12:00:00+00:00"), (NEXT_RUN, day(2))):
        assert record.count_models("d", run, at, "fold", [run.encode()], 1)
    assert record.told_in_all("d", "fold") == 2
    answered(record, "d", 2, run="c" * 32)
    assert (record.told("d", RUN, "fold"), record.told("d", NEXT_RUN, "fold")) == (0, 1)
    assert record.told_in_all("d", "fold") == 1


def test_what_several_runs_ask_alike_is_one_question_of_all_runs() -> None:
    """Honest runs of one plan ask the same: each once more would shut the plant to its method."""
    record = ExposureRecord(None)
    for run in (RUN, NEXT_RUN):
        assert record.count_models("d", run, day(2), "isolating wafl", [b"the same"], 1)
    assert record.told_in_all("d", "isolating wafl") == 1
    assert record.count_models("d", NEXT_RUN, day(2), "isolating wafl", [b"another"], 2)
    assert record.told_in_all("d", "isolating wafl") == 2 and record.told_in_all("other", "isolating wafl") == 0


def test_that_more_was_told_than_is_kept_is_known_after_a_restart(tmp_path: Path) -> None:
    """From then on every row counts as isolated, however few directions stand in the record."""
    path = tmp_path / "exposure.sqlite"
    for full in (False, True):
        record = ExposureRecord(path)
        answered(record, "d", 2, value=float(full), full=full)
        answered(record, "another", 2)
        record.close()
        again = ExposureRecord(path)
        assert (again.stored("d", ROWS).span_full, again.stored("another", ROWS).span_full) == (full, False)
        again.close()


def test_late_vectors_of_an_answer_are_kept_all_and_in_their_order() -> None:
    record, figures = ExposureRecord(None), Figures(rows=64, vectors=1)
    for answer in range(3):
        late = tuple(f"{answer} {number}".encode() for number in range(3))
        record.add("d", RUN, day(2), day(1), Addition((), (), {}, figures, span_full=False, late=late))
    assert record.late() == [f"{answer} {number}".encode() for answer in range(3) for number in range(3)]
