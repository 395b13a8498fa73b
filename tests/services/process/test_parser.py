"""What a command line that is not understood is told: at which command, and what was likely meant."""

from __future__ import annotations

import pytest

from api.cli.main import main
from services.site_agent.cli import main as site_main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("words", "prog", "meant"), [
    ("pln list", "ballast", "plan"), ("plan lst", "ballast plan", "list"),
    ("plan list --arhived", "ballast plan list", "--archived"),
    ("plan trigger x --st=gap=1", "ballast plan trigger", "--set"), ("--vershun", "ballast", "--version"),
    ("--vershun plan list", "ballast", "--version"), ("completion bsh", "ballast completion", "bash"),
])
def test_what_is_not_known_comes_with_what_was_meant(words: str, prog: str, meant: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith(f"usage: {prog} [") and said.endswith(f"; did you mean {meant}?\n")
    assert f"\n{prog}: error: " in said


@pytest.mark.parametrize(("words", "prog", "meant"), [
    ("leger verify", "ballast-site", "ledger"), ("run --confg x", "ballast-site run", "--config"),
    ("ledger verfy", "ballast-site ledger", "verify"),
])
def test_at_the_plant_too(words: str, prog: str, meant: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        site_main(words.split())
    said = capsys.readouterr().err
    assert f"\n{prog}: error: " in said and said.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(("words", "said"), [
    ("plan list foo", "unrecognized arguments: foo\n"), ("plan list --zzz 7", "unrecognized arguments: --zzz 7\n"),
    ("", "give a command; --help lists them\n"),
])
def test_where_nothing_is_near_nothing_is_guessed(words: str, said: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize(("words", "prog"), [
    ("plan list pumps", "ballast plan list"), ("doctor now", "ballast doctor"),
])
def test_a_word_too_many_is_refused_and_not_passed_over(words: str, prog: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert f"\n{prog}: error: unrecognized arguments: {words.split()[-1]}" in capsys.readouterr().err
