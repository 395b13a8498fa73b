"""What both faces work with: closed at the end, and names of plants that callers may see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from api.backend.wiring import open_backend
from services.contracts.errors import UnavailableError
from services.contracts.versions.report import GateResult
from services.process.settings import Settings
from services.round_store.store import RoundStore


def settings(home: Path, url: str) -> Settings:
    return Settings.load(home, {"BALLAST_DATABASE_URL": url})


def test_a_reason_names_no_plant_that_was_ever_enrolled(
    tmp_path: Path, new_sqlite: Callable[[], str], new_key: Callable[[], str]
) -> None:
    """Also one that is suspended, or whose enrolment has ended: versions of before speak of it."""
    with open_backend(settings(tmp_path, new_sqlite())) as backend:
        for site in ("plant-here", "plant-held", "plant-gone"):
            backend.store.sites.enrol(site, new_key(), ())
        backend.store.sites.suspend("plant-held")
        backend.store.sites.remove("plant-gone")
        reason = "no score from plant-here, plant-held, plant-gone"
        gate = GateResult(name="min_site_f1", wanted=0.5, found=None, holds=False, reason=reason)
        shown = backend.named("pumps", gate, real=False)
        assert "plant" not in shown.reason and shown.reason.count("site-") == 3
        assert backend.named("pumps", gate, real=True) == gate


def test_the_store_is_closed_at_the_end_also_where_that_is_an_error(
    tmp_path: Path, new_sqlite: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[RoundStore] = []
    close = RoundStore.close

    def noted(store: RoundStore) -> None:
        closed.append(store)
        close(store)

    monkeypatch.setattr(RoundStore, "close", noted)
    with pytest.raises(ValueError), open_backend(settings(tmp_path, new_sqlite())) as backend:
        raise ValueError
    assert closed == [backend.store]


def test_of_a_database_that_is_not_there_it_is_said_how_it_is_made_and_of_no_other(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "rows.db", tmp_path / "folder.db"
    wrong.mkdir()
    for file, told in ((missing, True), (wrong, False)):
        with open_backend(settings(tmp_path, f"sqlite:///{file}")) as backend:
            with pytest.raises(UnavailableError) as refused:
                backend.check_store()
        assert refused.value.code == "database_cannot_open"
        assert ("`ballast migrate` makes it" in str(refused.value)) is told
    assert not missing.exists()
