"""Keys of the OEM's own are known also where the plant link's servers are not ours."""

from __future__ import annotations

from pathlib import Path

from api.backend.oem_keys import oem_keys
from services.contracts.keys.signing import new_seed_file, public_key
from services.process.settings import Settings


def test_with_servers_of_its_own_the_coordinators_key_is_the_oems(tmp_path: Path) -> None:
    seed = tmp_path / "coordinator.nk"
    said = {"BALLAST_NATS_SERVERS": "tls://nats.example.com:4222", "BALLAST_NATS_SEED_FILE": str(seed)}
    assert oem_keys(Settings.load(tmp_path, said)) == frozenset(), "it is on another host"
    new_seed_file(seed)
    assert oem_keys(Settings.load(tmp_path, said)) == {public_key(seed)}
