"""The agent answers tasks over the link, through the death of the server and its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.bus import server
from services.contracts.wire.codec import decode, digest
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate
from tests.ledgers import verified
from tests.services.site_agent.connection.conftest import Bus, Oem, Plant
from tests.waiting import PATIENCE


def test_answers_tasks_survives_the_servers_death_and_stops_cleanly(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    plant.start()
    plant.wait_for("no server at")
    bus.start()
    plant.wait_for("connected as a site")
    (first,), _ = oem.ask(oem.join(1))
    assert isinstance(decode(first, 1 << 20), SiteUpdate)

    bus.kill()
    plant.wait_for("connection lost")
    bus.start()
    plant.wait_for("connected again")
    (second,), _ = oem.ask(oem.join(2))
    assert isinstance(decode(second, 1 << 20), SiteUpdate)

    code, said = plant.stop()
    assert code == 0, said
    assert "Traceback" not in said
    entries = verified(plant.folder / "ledger.jsonl")
    assert [entry["message"] for entry in entries] == ["hello", "update", "hello", "update"]
    assert [entry["sha256"] for entry in entries if entry["message"] == "update"] == [digest(first), digest(second)]
    assert said.count("no server at") == 1, "an absent server is said once, not at every try"
    assert said.count("connection lost") == 1, "who stops loses no connection"


def test_prints_one_line_of_json_when_it_is_heard_for_the_first_time(bus: Bus, plant: Plant) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    plant.start("--json")
    bus.start()
    plant.wait_for("connected as a site")
    bus.kill()
    plant.wait_for("connection lost")
    bus.start()
    plant.wait_for("connected again")
    assert plant.process is not None
    plant.process.send_signal(signal.SIGTERM)
    out, _ = plant.process.communicate(timeout=PATIENCE)
    told = {"site_id": "plant-1", "server": f"127.0.0.1:{bus.port}", "public_key": plant.key}
    assert out.count("\n") == 1 and json.loads(out) == told


def test_says_hello_when_it_connects(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()

    async def listen() -> bytes:
        listening = asyncio.create_task(oem._ask((), 1))
        await asyncio.sleep(0.5)
        plant.start()
        _, (hello,) = await listening
        return hello

    message = decode(asyncio.run(listen()), 1 << 16)
    assert isinstance(message, Hello) and message.site_id == "plant-1"


def test_killed_and_started_again_it_answers_the_next_task(bus: Bus, plant: Plant, oem: Oem) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    (first,), _ = oem.ask(oem.join(1))
    assert plant.process is not None
    plant.process.kill()
    plant.process.communicate()
    plant.start()
    plant.wait_for("connected", times=2)
    (again,), _ = oem.ask(oem.join(1))
    assert again == first, "a restarted agent must give the same answer"
    verified(plant.folder / "ledger.jsonl")


def test_told_to_stop_while_the_server_is_absent_it_stops(plant: Plant) -> None:
    plant.start()
    plant.wait_for("no server at")
    code, said = plant.stop()
    assert code == 0, said


def test_the_console_and_the_wire_name_nothing_of_data_that_do_not_fit(
    bus: Bus, plant: Plant, oem: Oem, make_table: Any, write_csv: Callable[..., Path]
) -> None:
    """The agent's console may be collected by others; where and what is wrong stands in the site's own log alone."""
    rows = make_table(60)
    rows[7][3] = "CANARY-739158264013"
    write_csv(rows)
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    (answer,), _ = oem.ask(oem.join())
    refusal = decode(answer, 1 << 20)
    assert isinstance(refusal, SiteRefusal) and refusal.code == "bad_data"
    plant.wait_for("line 8: label 'CANARY-739158264013' is not a class of pump")
    code, said = plant.stop()
    assert code == 0
    assert "refused join" in said
    assert "CANARY" not in said and b"CANARY" not in answer
    assert "CANARY" not in (plant.folder / "ledger.jsonl").read_text()


def test_a_second_signal_ends_an_agent_that_is_still_at_work(plant: Plant) -> None:
    """Told to stop, it waits for its work; told again, it does not."""
    program = (
        "import asyncio, sys, threading, time\n"
        "from services.site_agent import agent\n"
        "async def at_work():\n"
        "    stop = asyncio.Event()\n"
        "    loop = asyncio.get_running_loop()\n"
        "    for number in (agent.signal.SIGINT, agent.signal.SIGTERM):\n"
        "        loop.add_signal_handler(number, agent._on_signal, loop, stop)\n"
        "    asyncio.create_task(asyncio.to_thread(time.sleep, 600))\n"
        "    print('at work', flush=True)\n"
        "    await stop.wait()\n"
        "    print('stopped', flush=True)\n"
        "agent.STOP_SECONDS = float(sys.argv[1])\n"
        "asyncio.run(at_work())\n"
    )
    for seconds, more, code in (("600", True, -signal.SIGTERM), ("0.5", False, 0)):
        process = subprocess.Popen([sys.executable, "-c", program, seconds], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.terminate()
        assert process.stdout.readline() == "stopped\n"
        if more:
            process.terminate()
        assert process.wait(timeout=PATIENCE) == code
        process.stdout.close()
