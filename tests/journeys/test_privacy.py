"""What is planted in a plant's data is found nowhere outside that plant's folder."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, public_key
from tests.oracles.store_walk import all_columns

NUMBER = 1.35791197531  # twelve odd digits
WORD = "ZebraQuartzCanary"


@pytest.fixture(scope="module")
def planted(works: Any, rig_rows: Any, alone: None) -> Iterator[str]:
    """A fifth plant: its word for a leak and one of its values are canaries."""
    rows = rig_rows(4, 60, 11)
    rows = [[*row[:3], WORD if row[3] == "leak" else row[3]] for row in rows]
    rows[7][1] = f"{NUMBER:.11f}"
    works.create_site("plant-5", rows, ["flow", "pressure", "speed", "label"])
    settings = works.plants / "plant-5" / "site.toml"
    text = settings.read_text()
    assert "[data.labels]\n" in text
    settings.write_text(text.replace("[data.labels]\n", f'[data.labels]\n"{WORD}" = "leak"\n'))
    works.start_agent("plant-5")
    works.wait_for_agents()
    yield "plant-5"
    works.kill_agent("plant-5")
    del works.agents["plant-5"]


def needles() -> list[bytes]:
    """The canaries in every form in which they could travel."""
    numbers = [np.array([NUMBER]), np.array([NUMBER], dtype=">f8"), np.array([NUMBER], dtype="f4")]
    scaled = np.array([(NUMBER + 5.0) / 10.0])
    text = f"{NUMBER:.11f}".encode()
    return [*(number.tobytes() for number in numbers), scaled.tobytes(), text, text[:11], WORD.encode()]


SEARCH = """
import sys
from pathlib import Path
needles = [bytes.fromhex(word) for word in sys.argv[1].split(",")]
for folder in sys.argv[2:]:
    for path in Path(folder).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if any(needle in content for needle in needles):
                print(path)
"""


def files_with_a_canary(*folders: Path) -> list[Path]:
    """Files below the folders that hold a canary.

    A process of its own reads them: whoever closes a file of an open SQLite database gives up the database's locks.
    """
    words = ",".join(needle.hex() for needle in needles())
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, words, *(str(folder) for folder in folders)],
        capture_output=True, text=True, check=True,
    )
    return [Path(line) for line in done.stdout.splitlines()]


async def record_traffic(works: Any, plan: str) -> list[bytes]:
    """All messages on the plant link while a run of the plan goes from start to end."""
    seed = works.home / "recorder.nk"
    new_seed_file(seed)
    users = works.files.users
    users.write_text(users.read_text().replace("users = [", f"users = [\n  {{ nkey: {public_key(seed)} }}"))
    os.kill(int(works.files.pid.read_text()), 1)
    await asyncio.sleep(0.5)
    heard: list[bytes] = []

    async def note(message: Any) -> None:
        heard.append(message.subject.encode() + b" " + message.data)

    context = ssl.create_default_context(cafile=str(works.files.authority))
    client = await nats.connect(works.settings.nats_servers[0], tls=context, nkeys_seed=str(seed))
    await client.subscribe(">", cb=note)
    await client.flush()
    works.train(plan)
    await asyncio.to_thread(works.wait_for_run, plan)
    await client.drain()
    return heard


@pytest.fixture(scope="module")
def heard(works: Any, planted: str) -> list[bytes]:
    """All that was said on the plant link in a whole run with the planted plant."""
    works.plan("canary", method="cohort-bundle", reveal="sums", gap=1e-3, min_sites=5, max_rounds=100)
    messages = asyncio.run(record_traffic(works, "canary"))
    run = works.newest_run("canary")
    assert run.status == "completed", run.reason
    assert {site.site_id for site in run.sites} >= {planted}
    return messages


def test_canaries_stay_in_the_plant(works: Any, planted: str, heard: list[bytes], prefect_home: Path) -> None:
    assert sum(b"site.plant-5.task" in message for message in heard) > 3, "the recorder heard nothing"
    answers = [message for message in heard if b"_COORD" in message[:20]]
    assert len(answers) > 3, "the recorder heard no answer"

    assert not any(needle in message for message in heard for needle in needles())
    own = works.plants / planted
    found = files_with_a_canary(works.home, works.plants, prefect_home)
    assert own / "data.csv" in found, "nothing was planted"
    assert [path for path in found if own not in path.parents] == []
    for cell in all_columns(works.store.engine):
        value = cell.value if isinstance(cell.value, bytes) else str(cell.value).encode()
        assert not any(needle in value for needle in needles()), f"a canary is in {cell.table}.{cell.column}"


@pytest.mark.usefixtures("heard")
def test_the_ledger_accounts_for_every_message(works: Any, planted: str) -> None:
    bin_folder = Path(works.environment["BALLAST_BIN"])
    checked = subprocess.run(
        [str(bin_folder / "ballast-site"), "ledger", "verify", "--config", str(works.plants / planted / "site.toml")],
        capture_output=True, text=True, check=False,
    )
    assert checked.returncode == 0, checked.stderr
    entries = [json.loads(line) for line in (works.plants / planted / "ledger.jsonl").read_text().splitlines()]
    run = works.newest_run("canary")
    sent = {entry["sha256"] for entry in entries}
    received = {
        answer.payload_sha256 for record in works.store.runs.get_rounds(run.run_id) for answer in record.answers
        if answer.site_id == planted
    }
    assert received and received <= sent


@pytest.mark.usefixtures("heard")
def test_the_vectors_are_gone_when_the_run_is_over(works: Any) -> None:
    cells = list(all_columns(works.store.engine))
    kept = {cell.value for cell in cells if (cell.table, cell.column) == ("run_states", "run_id")}
    finished = [run for run in works.store.runs.list_runs() if run.status not in ("pending", "running")]
    assert finished
    # Newest first: the plan's last completed run keeps its own, from which the next one goes on.
    last: dict[str, str] = {}
    for run in finished:
        if run.status == "completed":
            last.setdefault(run.plan.name, run.run_id)
    assert {run.run_id for run in finished} & kept <= set(last.values())
    drafts = {cell.value for cell in cells if (cell.table, cell.column) == ("run_drafts", "run_id")}
    assert not drafts & {run.run_id for run in finished}
