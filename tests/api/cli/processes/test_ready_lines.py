"""What serves until it is stopped prints one line of JSON when it is ready, and nothing else on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from api.cli.main import main
from services.bus.cluster import Member, make_cluster
from services.site_agent import cli as plant
from tests.ports import free_port
from tests.waiting import PATIENCE

SECTIONS = ("api", "nats", "prefect", "mlflow")


def started(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def ready_line(process: subprocess.Popen[str]) -> dict[str, object]:
    """The first line; stops the process and shows that there is no other."""
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "it ended before it was ready"
        told: dict[str, object] = json.loads(line)
    finally:
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE)
    assert rest == "", rest
    return told


def test_up_says_where_all_is_when_all_is_there(tmp_path: Path) -> None:
    ports = {name: free_port() for name in SECTIONS}
    (tmp_path / "ballast.toml").write_text("".join(f"[{name}]\nport = {port}\n" for name, port in ports.items()))
    process = started("api.cli.main", "up", "--home", str(tmp_path), "--json")
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        with urlopen(f"{told['api']}/readyz", timeout=PATIENCE) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE)
    assert rest == "" and process.returncode == 0
    assert told["api"].endswith(f":{ports['api']}") and told["console"] == f"{told['api']}/console"
    assert told["prefect"].endswith(f":{ports['prefect']}") and told["mlflow"].endswith(f":{ports['mlflow']}")
    assert any(each.endswith(f":{ports['nats']}") for each in told["plant_link"])
    for name in ("prefect_secret_file", "mlflow_secret_file", "logs"):
        assert Path(told[name]).exists()


def test_a_part_alone_takes_no_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--only", "api", "--json", "--home", str(tmp_path)]) == 1
    assert "a part alone (--only)" in capsys.readouterr().err


def test_a_server_of_a_cluster_says_when_it_has_its_users(tmp_path: Path) -> None:
    assert main(["migrate", "--home", str(tmp_path / "home")]) == 0
    member = Member("a", ("127.0.0.1",), port=free_port(), route_port=free_port())
    files = make_cluster(tmp_path / "cluster", [member])["a"]
    words = ("bus", "serve", str(files.folder), "--home", str(tmp_path / "home"), "--json")
    told = ready_line(started("api.cli.main", *words))
    assert told["folder"] == str(files.folder) and isinstance(told["pid"], int)


def test_the_plants_page_says_its_address(tmp_path: Path) -> None:
    assert plant.main(["init", "--site-id", "plant-1", "--dir", str(tmp_path / "p")]) == 0
    port = free_port()
    words = ("console", "--config", str(tmp_path / "p" / "site.toml"), "--port", str(port), "--json")
    told = ready_line(started("services.site_agent", *words))
    assert told["site_id"] == "plant-1" and str(told["address"]).startswith(f"http://127.0.0.1:{port}/")


def test_a_servers_own_folder_is_no_place_to_copy_it_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = make_cluster(tmp_path / "cluster", [Member("a", ("127.0.0.1",))])["a"].folder
    assert main(["bus", "serve", str(own), "--home", str(tmp_path), "--runtime", f"{own}/../a"]) == 1
    assert capsys.readouterr().err == (
        f"ballast: --runtime names the server's own folder, {own}: leave it out, or give another\n"
    )


def test_who_cannot_begin_prints_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run, words in (
        (plant.main, ["run", "--config", str(tmp_path / "none.toml"), "--json"]),
        (plant.main, ["console", "--config", str(tmp_path / "none.toml"), "--json"]),
        (main, ["bus", "serve", str(tmp_path), "--home", str(tmp_path), "--json"]),
    ):
        assert run(words) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
