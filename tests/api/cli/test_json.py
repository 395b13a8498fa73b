"""Every command of both programs prints JSON where it is asked to; a new one that does not fails here."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from api.cli.main import COMMANDS, _module, main, make_parser
from services.plant_simulator.assets import builtin_asset_type_path
from services.process import command_line
from services.process.command_line import whole_number
from services.site_agent import cli as plant

PUMP = builtin_asset_type_path("triplex-pump")
EXEMPT = {
    "ballast demo": "tells as it goes; --json FILE takes its account",
    "ballast completion": "prints a script",
    "ballast-site completion": "prints a script",
}
SIZES = {"ballast simulate": ["--sites", "1", "--train", "8", "--test", "8"]}
"""What keeps a command short that can be done."""
SERVES = {"ballast up", "ballast bus serve", "ballast-site run", "ballast-site console"}
"""Go on until they are stopped: their tests are ``test_ready_lines.py`` and those of the plant link."""


def commands(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that has no commands below it."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield path, parser
    for action in below:
        for name, each in action.choices.items():
            yield from commands(each, f"{path} {name}")


@cache
def every() -> dict[str, argparse.ArgumentParser]:
    whole = make_parser({name: _module(name) for name in COMMANDS})
    return {**dict(commands(whole, "ballast")), **dict(commands(plant._parser(), "ballast-site"))}


def test_every_command_takes_json_unless_it_is_said_why_not() -> None:
    found = every()
    assert len(found) > 50 and set(EXEMPT) <= set(found)
    flags = {
        name: [action for action in parser._actions if "--json" in action.option_strings]
        for name, parser in found.items()
    }
    without = {name for name, actions in flags.items() if not actions or actions[0].nargs != 0}
    assert without == set(EXEMPT)


def test_what_is_told_is_one_document_or_lines(capsys: pytest.CaptureFixture[str]) -> None:
    args = argparse.Namespace(json=True)
    command_line.tell(args, {"gap": float("inf"), "name": "é"}, "a line")
    assert json.loads(capsys.readouterr().out) == {"gap": "Infinity", "name": "é"}
    command_line.tell(argparse.Namespace(json=False), {}, "a line", "another")
    assert capsys.readouterr().out == "a line\nanother\n"


def test_changes_print_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*words: str) -> object:
        assert main([*words, "--home", str(tmp_path), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert set(asked("migrate")) == {"schema"}
    made = asked("token", "create", "--name", "x", "--role", "engineer")
    assert made["role"] == "engineer"
    gone = asked("token", "revoke", made["token_id"])
    assert gone["revoked_at"] and "secret" not in str(gone)
    assert asked("token", "list")[0]["token_id"] == made["token_id"]
    assert asked("audit", "verify")["events"] == 2


def wanted_words(parser: argparse.ArgumentParser, word: str) -> list[str]:
    """The least that a command has to be given: ``word`` for everything of which it does not list what it takes."""
    found = []
    for action in parser._actions:
        if action.required or (not action.option_strings and action.nargs not in ("?", "*")):
            given = str(next(iter(action.choices))) if action.choices else "1" if action.type is whole_number else word
            found += [*action.option_strings[:1], given]
    return found


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with an empty store."""
    home = tmp_path_factory.mktemp("migrated")
    assert main(["migrate", "--home", str(home)]) == 0
    return home


@pytest.mark.parametrize("name", sorted(set(every()) - set(EXEMPT) - SERVES))
def test_what_cannot_be_done_is_one_line_or_one_document(
    name: str, migrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, there = tmp_path / "file", tmp_path / "there"
    file.write_text("[x")
    there.mkdir()
    monkeypatch.chdir(there)
    parser, run = every()[name], (plant.main if name.startswith("ballast-site ") else main)
    options = {text for action in parser._actions for text in action.option_strings}
    homes = ([], ["--home", str(migrated)], ["--home", str(file / "below")])
    for home in homes if "--home" in options else ([],):
        for word in ("No_Name", str(file), str(file / "below"), "x" * 500):
            words = [*name.split()[1:], *wanted_words(parser, word), *SIZES.get(name, ()), *home, "--json"]
            code: object
            try:
                code = run([*words, *(["--config", word] if "--config" in options else [])])
            except SystemExit as left:
                code = left.code
            told, said = capsys.readouterr()
            if told:
                json.loads(told)
            assert code in (0, 1, 2) and (code == 0 or told or said), words
            assert code != 1 or said.count("\n") <= 1, (words, said)


def test_the_plant_s_commands_print_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "plant-1"
    assert plant.main(["init", "--site-id", "plant-1", "--dir", str(folder), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["site_id"] == "plant-1" and made["public_key"].startswith("U")
    config = ["--config", str(folder / "site.toml"), "--json"]
    assert plant.main(["key", "show", *config]) == 0
    assert json.loads(capsys.readouterr().out) == {"public_key": made["public_key"], "next_public_key": None}
    assert plant.main(["key", "new", *config]) == 0
    following = json.loads(capsys.readouterr().out)["next_public_key"]
    assert following != made["public_key"] and plant.main(["key", "show", *config]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"public_key": made["public_key"], "next_public_key": following}
    assert plant.main(["key", "use", "--untried", *config]) == 0
    assert json.loads(capsys.readouterr().out) == {"public_key": following}


def test_drafts_are_told_with_their_text_and_notes(
    migrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text is what is printed without ``--json``, to the letter."""
    table = tmp_path / "rows.csv"
    table.write_text("flow,label\n" + "".join(f"{each / 7},{('ok', 'leak')[each % 2]}\n" for each in range(40)))
    assert main(["asset-type", "add", str(PUMP), "--home", str(migrated)]) == 0
    capsys.readouterr()
    for words, member in (
        (["asset-type", "draft", str(table), "--name", "valve"], "asset_type"),
        (["plan", "init", "nightly", "--asset-type", "triplex-pump", "--home", str(migrated)], "plan"),
    ):
        assert main(words) == 0
        printed = capsys.readouterr().out
        assert main([*words, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert set(told) == {"text", member, "notes"} and told["text"] == printed
        assert told[member]["name"] == tomllib.loads(printed)["name"] and told["notes"]


def test_simulated_plants_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--sites", "2", "--train", "8", "--test", "8"]
    assert main(["simulate", "--out", str(tmp_path / "raw"), *size, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["plants"], told["train"], told["folder"]) == (["plant-1", "plant-2"], 8, str(tmp_path / "raw"))
    assert all((tmp_path / "raw" / each).is_dir() for each in told["plants"])


def test_a_part_that_is_away_is_said_in_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "flows", "--home", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"part": "flows", "at_work": False}
    assert main(["health", "flows", "--home", str(tmp_path)]) == 1
    assert capsys.readouterr() == ("", "ballast: flows does not answer here\n")
