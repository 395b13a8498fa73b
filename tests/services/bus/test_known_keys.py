"""A key or an authority that plants know is not made anew in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.errors import ConflictError


@pytest.fixture
def start(tmp_path: Path) -> Callable[[int], BusFiles]:
    def start(known_to: int) -> BusFiles:
        files = BusFiles(tmp_path / "nats")
        prepare(files, host="127.0.0.1", port=1, host_names=["127.0.0.1"], site_keys={}, known_to=known_to)
        return files

    return start


def test_a_folder_that_others_may_read_is_shut_before_anything_is_written_into_it(tmp_path: Path) -> None:
    files = BusFiles(tmp_path / "bus")
    files.folder.mkdir()
    files.folder.chmod(0o755)
    prepare(files, host="127.0.0.1", port=1, host_names=["127.0.0.1"], site_keys={})
    assert files.folder.stat().st_mode & 0o077 == 0 and files.users.exists()


def test_a_lost_key_stops_the_start_while_plants_know_it(start: Callable[[int], BusFiles]) -> None:
    files = start(0)
    files.coordinator_seed.unlink()
    for known_to, plants in ((1, "1 enrolled plant know"), (3, "3 enrolled plants know")):
        with pytest.raises(ConflictError, match=f"coordinator.nk is gone, and {plants}.*ballast restore") as failure:
            start(known_to)
        assert failure.value.code == "key_lost" and not files.coordinator_seed.exists()
    assert start(0).coordinator_seed.exists(), "with no plant that knows it, a new one is made"
    start(3)


@pytest.mark.parametrize("name", ["ca.pem", "server.pem", "server.key"])
def test_a_lost_part_of_the_certificates_stops_the_start(start: Callable[[int], BusFiles], name: str) -> None:
    files = start(0)
    before = files.authority.read_bytes()
    (files.folder / name).unlink()
    with pytest.raises(ConflictError, match=f"there is no {name} any more, and 2 enrolled plants") as failure:
        start(2)
    assert failure.value.code == "certificate_lost" and not (files.folder / name).exists()
    for path in (files.authority, files.certificate, files.key):
        path.unlink(missing_ok=True)
    assert start(2).authority.read_bytes() != before, "without all three they are renewed, as is said"
