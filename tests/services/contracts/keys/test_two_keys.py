"""While a key is changed for another, either may sign; before and after only one does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from services.contracts.history.site import Site
from services.contracts.keys.signing import new_seed_file, public_key, signer, verify

NOW = datetime(2031, 1, 1, tzinfo=UTC)


def test_either_of_two_keys_may_have_signed(tmp_path: Path) -> None:
    for name in ("old", "new", "other"):
        new_seed_file(tmp_path / name)
    old, new = (public_key(tmp_path / name) for name in ("old", "new"))
    signed = {name: signer(tmp_path / name)(b"data") for name in ("old", "new", "other")}
    assert verify(f"{new} {old}", b"data", signed["old"]) and verify(f"{new} {old}", b"data", signed["new"])
    assert not verify(f"{new} {old}", b"data", signed["other"])
    assert not verify(new, b"data", signed["old"])
    assert not verify("", b"data", signed["new"])


def test_the_former_key_holds_until_its_end() -> None:
    site = Site(site_id="north", public_key="UNEW", enrolled_at=NOW, updated_at=NOW)
    assert site.keys_at(NOW) == "UNEW"
    changed = site.model_copy(update={"former_key": "UOLD", "former_key_until": NOW + timedelta(hours=1)})
    assert changed.keys_at(NOW) == "UNEW UOLD"
    assert changed.keys_at(NOW + timedelta(hours=1)) == "UNEW"
