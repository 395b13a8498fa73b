"""What a change of an enrolment does beside the store: the NATS server's users, the OEM's own keys, the trail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend.actor import Actor
from api.sites import service
from api.sites.schemas import KeyChange, SiteEnrolment
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.keys.signing import new_seed_file
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from services.round_store.store import RoundStore

ADA = Actor("ada", Role.ADMINISTRATOR)


@dataclass
class Users:
    """Users of a NATS server: what they were told."""

    told: list[object] = field(default_factory=list)

    def refresh(self) -> None:
        self.told.append("refreshed")

    def rotate_coordinator(self, until: datetime, standing: object) -> tuple[str, str]:
        self.told += [until, standing]
        return "NEW", "OLD"


@pytest.fixture
def backend(new_sqlite: Callable[[], str], tmp_path: Path) -> Iterator[Any]:
    """A store, and users that are no server's."""
    store = RoundStore.open(new_sqlite())
    yield SimpleNamespace(
        store=store, nats_users=Users(), settings=Settings.model_validate({"home": tmp_path}), registry=None
    )
    store.close()


def test_an_asset_type_that_is_named_twice_is_taken_once(backend: Any, new_key: Callable[[], str]) -> None:
    backend.store.asset_types.add(builtin_asset_type("triplex-pump"))
    twice = SiteEnrolment(site_id="plant-9", public_key=new_key(), asset_types=("triplex-pump", "triplex-pump"))
    assert service.enrol(backend, ADA, twice).asset_types == ("triplex-pump",)


def test_the_server_learns_of_every_change_at_once(backend: Any, new_key: Callable[[], str]) -> None:
    """Also of one that is made already: the server may have missed it before."""
    told = backend.nats_users.told
    service.enrol(backend, ADA, SiteEnrolment(site_id="plant-9", public_key=new_key()))
    assert told == ["refreshed"]
    service.rotate_key(backend, ADA, "plant-9", KeyChange(public_key=new_key(), overlap_hours=2.0, reason="yearly"))
    for change in (service.suspend, service.suspend, service.activate, service.remove):
        change(backend, ADA, "plant-9", "why")
    assert told == ["refreshed"] * 6


def test_the_key_of_before_holds_for_so_many_hours(backend: Any, new_key: Callable[[], str]) -> None:
    first, second = new_key(), new_key()
    service.enrol(backend, ADA, SiteEnrolment(site_id="plant-9", public_key=first))
    begun = datetime.now(UTC)
    site = service.rotate_key(backend, ADA, "plant-9", KeyChange(public_key=second, overlap_hours=3.0, reason="x"))
    assert site.public_key == second and site.former_key == first and site.former_key_until is not None
    assert begun <= site.former_key_until - timedelta(hours=3) <= datetime.now(UTC)


def test_no_plant_bears_the_oems_key(backend: Any, new_key: Callable[[], str]) -> None:
    backend.settings.bus_folder.mkdir(parents=True)
    ours = new_seed_file(backend.settings.nats_seed)
    with pytest.raises(ConflictError, match="this key is the OEM's own; site plant-9"):
        service.enrol(backend, ADA, SiteEnrolment(site_id="plant-9", public_key=ours))
    assert backend.store.sites.list_sites() == []
    theirs = new_key()
    service.enrol(backend, ADA, SiteEnrolment(site_id="plant-9", public_key=theirs))
    with pytest.raises(ConflictError, match="this key is the OEM's own; site plant-9"):
        service.rotate_key(backend, ADA, "plant-9", KeyChange(public_key=ours, overlap_hours=0.0, reason="x"))
    assert backend.store.sites.get("plant-9").public_key == theirs


def test_a_coordinators_key_that_was_stolen_ends_at_once_and_vouches_for_what_is_signed_now(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(number: str) -> Any:
        return SimpleNamespace(signature="s" if number == "1" else None, to_document=lambda: {"number": number})

    backend.registry = SimpleNamespace(
        models=lambda: [SimpleNamespace(name="pumps")],
        versions=lambda name: [SimpleNamespace(version=number) for number in ("1", "2")],
    )
    backend.checked = SimpleNamespace(get=lambda name, number: version(number))
    monkeypatch.setattr(service, "signed_digest", lambda document: document["number"])
    begun = datetime.now(UTC)
    assert service.rotate_coordinator(backend, ADA, timedelta(days=1), "lost laptop", stolen=True) == ("NEW", "OLD")
    until, standing, after = backend.nats_users.told
    assert begun <= until <= datetime.now(UTC) and standing == frozenset({"1"}) and after == "refreshed"
    (entry,) = backend.store.audit.list_events()
    assert (entry.action, entry.target, entry.reason) == ("coordinator.rotate_key", "coordinator", "lost laptop")
    assert entry.after is not None and entry.after.items() >= {"stolen": True, "versions_that_stand": 1}.items()
    assert entry.before == {"public_key": "OLD"} and entry.after["public_key"] == "NEW"


def test_a_version_that_cannot_be_read_ends_no_stolen_key_and_says_what_does(backend: Any) -> None:
    def lost(name: str, number: str) -> Any:
        raise NotFoundError("its files are gone")

    backend.registry = SimpleNamespace(
        models=lambda: [SimpleNamespace(name="pumps")],
        versions=lambda name: [SimpleNamespace(version="7")],
    )
    backend.checked = SimpleNamespace(get=lost)
    with pytest.raises(UnavailableError, match="version 7 of pumps cannot be read.* gone.*--overlap 0h` ends"):
        service.rotate_coordinator(backend, ADA, timedelta(days=1), "lost laptop", stolen=True)
    assert backend.store.audit.list_events() == []


def test_one_that_was_not_holds_for_the_overlap(backend: Any) -> None:
    begun = datetime.now(UTC)
    service.rotate_coordinator(backend, ADA, timedelta(days=1), "yearly")
    until, standing, _ = backend.nats_users.told
    assert begun <= until - timedelta(days=1) <= datetime.now(UTC) and standing is None
    (entry,) = backend.store.audit.list_events()
    assert entry.after == {"public_key": "NEW", "former_key_until": until.isoformat()}
