"""What the agent does not talk to, or does not start with: one clear line, and an end."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.bus import certificates, server
from services.bus.configuration import BusFiles
from services.contracts.keys.signing import new_seed_file, public_key
from services.contracts.wire.codec import decode
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.outgoing.one_agent import log_for_one
from tests.ledgers import verified
from tests.nats_server import start
from tests.services.site_agent.connection.conftest import HOST, Bus, Oem, Plant


def one_line(said: str) -> str:
    """The last line that the agent said, which is the reason of its end."""
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("ballast-site: ")
    return last


def test_a_key_that_is_not_enrolled_is_a_clear_failure(bus: Bus, plant: Plant) -> None:
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert f"does not accept this site's key {plant.key}" in one_line(said)


def test_a_key_that_is_enrolled_a_moment_late_is_accepted(bus: Bus, plant: Plant, oem: Oem) -> None:
    bus.start()
    plant.start()
    plant.wait_for("data opened")
    time.sleep(0.7)
    server.update_users(bus.files, {"plant-1": plant.key})
    plant.wait_for("connected")
    (answer,), _ = oem.ask(oem.join())
    assert isinstance(decode(answer, 1 << 20), SiteUpdate)


def test_a_key_that_is_enrolled_for_another_site_is_a_clear_failure(bus: Bus, plant: Plant) -> None:
    server.update_users(bus.files, {"plant-2": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "not as site plant-1" in one_line(said)


def test_a_site_that_is_suspended_while_it_runs_ends_with_the_reason(bus: Bus, plant: Plant) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    server.update_users(bus.files, {})
    code, said = plant.ended()
    assert code == 1
    assert "does not accept this site's key" in one_line(said)
    assert "to enrol it for site plant-1, or to activate the site if it is suspended" in one_line(said)


def test_a_server_with_another_certificate_is_a_clear_failure(bus: Bus, plant: Plant, tmp_path: Path) -> None:
    other = BusFiles(tmp_path / "other")
    server.prepare(other, host=HOST, port=bus.port, host_names=[HOST], site_keys={"plant-1": plant.key})
    process = start(other, host=HOST, port=bus.port)
    try:
        plant.start()
        code, said = plant.ended()
    finally:
        process.kill()
        process.wait()
    assert code == 1
    assert "the server's certificate does not fit" in one_line(said)
    assert "ca in the settings must be the file that the OEM gave out" in one_line(said)


@pytest.mark.parametrize(("before", "expected"), [
    (timedelta(days=-3), "is not yet valid"), (certificates.LIFETIME + timedelta(days=1), "has expired"),
])
def test_a_certificate_that_does_not_hold_now_may_be_the_clocks_fault(
    bus: Bus, plant: Plant, monkeypatch: pytest.MonkeyPatch, before: timedelta, expected: str
) -> None:
    """So it is on a machine without a battery behind its clock, whose settings are well."""
    monkeypatch.setattr(certificates, "CLOCKS", before)
    for path in (bus.files.authority, bus.files.certificate, bus.files.key):
        path.unlink()
    server.prepare(bus.files, host=HOST, port=bus.port, host_names=[HOST], site_keys={"plant-1": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    line = one_line(said)
    assert code == 1 and f"(certificate {expected}); this machine's clock says {datetime.now(UTC):%Y-%m-%d}" in line
    assert "`timedatectl status`" in line and "ca in the settings" not in line


def test_a_server_without_tls_gets_nothing(bus: Bus, plant: Plant) -> None:
    text = bus.files.configuration.read_text()
    head, _, rest = text.partition("tls {")
    bus.files.configuration.write_text(head + rest.partition("}")[2])
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "the server does not speak TLS" in one_line(said)
    assert not verified(plant.folder / "ledger.jsonl"), "something left over an open connection"


def test_with_a_timeout_an_absent_server_ends_the_agent(plant: Plant) -> None:
    plant.start("--timeout", "1")
    code, said = plant.ended()
    assert code == 1
    assert "no NATS server answered" in one_line(said)


def test_a_ledger_that_was_tampered_with_stops_the_agent(bus: Bus, plant: Plant) -> None:
    (plant.folder / "ledger.jsonl").write_text("{}\n")
    plant.start()
    code, said = plant.ended()
    assert code == 1
    assert "is not what was written" in one_line(said)


def test_two_agents_of_one_site_cannot_run_at_once(plant: Plant) -> None:
    plant.start()
    plant.wait_for("no server at")
    second = Plant(plant.folder, plant.key)
    second.start()
    code, said = second.ended()
    assert code == 1
    assert "another agent of this site is running" in one_line(said)


def test_two_settings_in_one_folder_need_a_log_each(plant: Plant) -> None:
    """Beside the log stands who is connected: each would be told well by the other's note."""
    plant.start()
    plant.wait_for("no server at")
    settings = plant.folder / "site.toml"
    settings.write_text(f'exposure = "other.sqlite"\n{settings.read_text().replace("ledger.jsonl", "other.jsonl")}')
    second = Plant(plant.folder, plant.key)
    second.start("--timeout", "1")
    code, said = second.ended()
    assert code == 1
    assert "another agent of this site is running: it holds" in one_line(said) and "site.log.lock" in one_line(said)


def test_a_log_that_is_a_device_is_no_agents_own(tmp_path: Path) -> None:
    with log_for_one(Path("/dev/null")), log_for_one(Path("/dev/null")):
        """Both write into it."""
    with log_for_one(tmp_path / "a.log"), log_for_one(tmp_path / "b.log"):
        """Each has its own."""


def test_the_seed_file_names_the_key_that_was_given_out(plant: Plant, tmp_path: Path) -> None:
    assert public_key(plant.folder / "site.nk") == plant.key
    assert (plant.folder / "site.nk").stat().st_mode & 0o077 == 0
    assert new_seed_file(tmp_path / "other.nk") != plant.key
