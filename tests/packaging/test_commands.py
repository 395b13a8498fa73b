"""What units, containers, compose file and chart have run is what the programs read: each line by its real parser."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.cli.commands import prepare
from api.cli.main import _parse
from api.cli.processes import first_files
from services.site_agent.cli import _parser

INFRA = Path(__file__).parents[2] / "infra"
PYTHON = "/usr/bin/python3"
SUFFIX = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}|\$\([A-Z_]+\)|\{\{[^}]*\}\}|%i")


def filled(words: list[Any]) -> list[str]:
    """Words with what an engine would put in the place of its variables."""
    return [SUFFIX.sub(lambda found: found[1] or "prefect", str(word)) for word in words]


def of_units() -> Iterator[tuple[str, list[str]]]:
    for unit in (INFRA / "systemd").glob("*.service"):
        for line in re.findall(r"^Exec\w+=(.*)$", unit.read_text(), re.MULTILINE):
            for command in re.findall(r"/opt/\S+/bin/ballast\S*(?: [^;&|']+)?", line):
                program, *words = filled(shlex.split(command))
                yield unit.name, [Path(program).name, *words]


def of_containers() -> Iterator[tuple[str, list[str]]]:
    for file in (INFRA / "containers").glob("*.Containerfile"):
        text = file.read_text()
        found = dict(re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE))
        (check,) = re.findall(r"^HEALTHCHECK.*\\\n\s+CMD (\[.*\])$", text, re.MULTILINE)
        yield file.name, json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
        yield file.name, json.loads(check)


def of_compose() -> Iterator[tuple[str, list[str]]]:
    entry = [PYTHON, "-m", "api.cli.main"]
    for name, service in yaml.safe_load((INFRA / "compose.yaml").read_text())["services"].items():
        if name == "postgres":
            continue
        yield f"compose {name}", [*service.get("entrypoint", entry), *filled(service["command"])]
        if "healthcheck" in service:
            yield f"compose {name}", service["healthcheck"]["test"][1:]


def of_chart() -> Iterator[tuple[str, list[str]]]:
    for file in (INFRA / "helm" / "ballast" / "templates").glob("*.yaml"):
        for kind, inside in re.findall(r"(args|command): \[((?:[^\]{]|\{\{.*?\}\})*)\]", file.read_text()):
            words = filled(yaml.safe_load(f"[{SUFFIX.sub('prefect', inside)}]"))
            yield f"chart {file.name}", words if kind == "command" else [PYTHON, "-m", "api.cli.main", *words]


LINES = [*of_units(), *of_containers(), *of_compose(), *of_chart()]
PROGRAMS: dict[str, Callable[[list[str]], object]] = {
    "ballast": _parse, "api.cli.main": _parse,
    "ballast-site": lambda words: _parser().parse_args(words),
    "services.site_agent": lambda words: _parser().parse_args(words),
    "api.cli.processes.first_files": lambda words: first_files.parser().parse_args(words),
    "api.cli.commands.prepare": lambda words: argparse.ArgumentParser().parse_args(words) and prepare.main,
}


def read(command: list[str]) -> object:
    """What the program's parser makes of a command line; ``SystemExit`` where it knows it not."""
    program, *words = command
    if program == PYTHON:
        assert words[0] == "-m"
        program, words = words[1], words[2:]
    return PROGRAMS[program](words)


def test_every_kind_of_deployment_was_read() -> None:
    places = [place for place, _ in LINES]
    assert len([each for each in places if each.endswith(".service")]) == 3
    assert len([each for each in places if each.startswith("compose")]) == 16
    assert len([each for each in places if each.startswith("chart")]) >= 9
    assert len([each for each in places if each.endswith("Containerfile")]) == 4


@pytest.mark.parametrize(("place", "command"), LINES, ids=[f"{place} {' '.join(words)}" for place, words in LINES])
def test_its_program_reads_the_line(place: str, command: list[str]) -> None:
    assert read(command) is not None


@pytest.mark.parametrize("command", [
    ["ballast", "up", "--only", "nats"], ["ballast-site", "run", "--settings", "x"], ["ballast", "health", "bus"],
    [PYTHON, "-m", "api.cli.commands.prepare", "now"], [PYTHON, "-m", "api.cli.main", "bus", "start", "/data/nats"],
    [PYTHON, "-m", "api.cli.processes.first_files", "/out", "--names", "x"],
])
def test_a_line_that_no_program_knows_is_found(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(command)
