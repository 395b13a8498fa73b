"""Shells complete both commands: asked of the shells themselves, zsh as by somebody who presses the tab key."""

from __future__ import annotations

import argparse
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from api.cli.main import main
from services.contracts.errors import InvalidInputError
from services.process.completion import SHELLS, completion
from services.site_agent.cli import main as plant
from tests.waiting import PATIENCE


@pytest.fixture
def scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Folder with the scripts of both commands, a file a shell."""
    for shell in SHELLS:
        assert main(["completion", shell]) == 0 and plant(["completion", shell]) == 0
        (tmp_path / f"script.{shell}").write_text(capsys.readouterr().out)
    return tmp_path


def needed(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here: apt-get install {shell}")


def of_bash(scripts: Path, line: str) -> set[str]:
    words = line.split(" ")
    name, quoted = f"_{words[0].replace('-', '_')}", " ".join(f"'{word}'" for word in words)
    asks = f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; {name}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", f"source {scripts}/script.bash; {asks}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def of_fish(scripts: Path, line: str) -> set[str]:
    asks = f"source {scripts}/script.fish; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", asks], capture_output=True, text=True, check=True, cwd=scripts,
        env={**os.environ, "HOME": str(scripts)},
    )
    assert done.stderr == ""
    return {said.split("\t")[0] for said in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_actions_and_options_are_offered(shell: str, scripts: Path) -> None:
    needed(shell)
    offered = {"bash": of_bash, "fish": of_fish}[shell]
    assert offered(scripts, "ballast pl") == {"plan"}
    assert {"update", "archive", "diff"} <= offered(scripts, "ballast plan ")
    assert offered(scripts, "ballast --version run wa") == {"watch"}
    assert "--reason" in offered(scripts, "ballast plan update --")
    assert offered(scripts, "ballast-site ledger v") == {"verify"}
    assert set(SHELLS) <= offered(scripts, "ballast completion ")


def test_zsh_completes_what_is_typed(scripts: Path) -> None:
    """At a terminal, for zsh completes nowhere else; the commands are functions that say what they were called with."""
    needed("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(scripts)
        os.execvpe("zsh", ["zsh", "-f"], {**os.environ, "TERM": "dumb", "HOME": str(scripts)})
    heard = ""

    def until(mark: str) -> None:
        nonlocal heard
        deadline = time.monotonic() + PATIENCE
        while mark not in heard:
            assert time.monotonic() < deadline and child, heard
            if select.select([terminal], [], [], 0.1)[0]:
                heard += os.read(terminal, 65536).decode(errors="replace")

    try:
        for each in ("ballast", "ballast-site"):
            os.write(terminal, f'{each}() {{ print -r -- "$0 was called with: $*" }}\n'.encode())
        os.write(terminal, b"source script.zsh; print rea''dy\n")
        until("ready\r\n")
        for typed, called in (
            ("ballast ru\twa\t", "run watch"), ("ballast --version pl\tdif\t", "--version plan diff"),
            ("ballast plan update --reas\t", "plan update --reason"),
        ):
            os.write(terminal, f"{typed}\n".encode())
            until(f"ballast was called with: {called}")
        os.write(terminal, b"ballast-site led\tv\t\n")
        until("ballast-site was called with: ledger verify")
    finally:
        os.close(terminal)  # it ends with its terminal
        os.waitpid(child, 0)
    assert "command not found" not in heard


def test_another_shell_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="give one of bash, zsh, fish"):
        completion(argparse.ArgumentParser("x"), "tcsh")
