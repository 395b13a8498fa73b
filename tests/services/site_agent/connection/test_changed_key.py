"""An agent goes on by the key with which it began until that ends, whatever key its file has since."""

from __future__ import annotations

from services.bus import server
from services.contracts.wire.codec import unpack
from services.site_agent.setup.key_change import make_next_key, use_next_key
from tests.services.site_agent.connection.conftest import Bus, Oem, Plant


def changed_while_it_runs(bus: Bus, plant: Plant) -> str:
    """Start the agent, and put the next key, which the OEM has beside it, in the place of its own; that key."""
    following = make_next_key(plant.folder / "site.nk")
    server.update_users(bus.files, {"plant-1": f"{following} {plant.key}"})
    bus.start()
    plant.start()
    plant.wait_for("connected as a site")
    return use_next_key(plant.folder / "site.nk")


def test_a_lost_connection_comes_back_while_both_keys_hold(bus: Bus, plant: Plant, oem: Oem) -> None:
    """Before it is started again, as `key use` says; its answers are signed by the key of its connection."""
    changed_while_it_runs(bus, plant)
    bus.kill()
    plant.wait_for("connection lost")
    bus.start()
    plant.wait_for("connected again")
    (answer,), _ = oem.ask(oem.join())
    assert unpack(answer).is_signed_by(plant.key)


def test_the_end_of_the_former_key_says_that_the_agent_is_to_be_started_again(bus: Bus, plant: Plant) -> None:
    following = changed_while_it_runs(bus, plant)
    server.update_users(bus.files, {"plant-1": following})
    code, said = plant.ended()
    last = said.strip().splitlines()[-1]
    assert code == 1 and f"does not accept the key {plant.key} any more" in last
    assert f"its site has {following} now: start the agent again" in last and "ask the OEM" not in last
    plant.start()
    plant.wait_for("connected as a site", times=2)
