"""What an API process does with the keys of its home folder while their store is away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from api.backend.first_keys import begin_with_keys
from services.identity.service_keys import MEANINGS, OtherKeyError
from services.process.settings import Settings


def test_while_the_store_is_away_it_begins_all_the_same_and_makes_no_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A key that it made now would be another than the service's, which only the store knows."""
    caplog.set_level(logging.WARNING, "ballast.api")
    begin_with_keys(Settings.load(tmp_path, {}))
    assert "the keys of the home folder are not looked at yet" in caplog.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MEANINGS)
def test_each_key_is_held_to_the_one_that_the_service_has(
    tmp_path: Path, new_sqlite: Callable[[], str], name: str
) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": new_sqlite()})
    begin_with_keys(settings)
    assert sorted(path.name for path in tmp_path.glob("*.key")) == sorted(MEANINGS)
    (tmp_path / name).write_text("ab" * 32 + "\n")
    with pytest.raises(OtherKeyError):
        begin_with_keys(settings)
