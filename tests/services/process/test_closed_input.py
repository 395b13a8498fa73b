"""Commands that read the standard input, started without one, or where it ends at a prompt: a line, no traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

AGENT, SERVICE = "services.site_agent", "api.cli.main"


@pytest.mark.parametrize(("module", "command", "said"), [
    (AGENT, "enrol --url http://127.0.0.1:1 --code -", "ballast-site: there is no standard input to read from"),
    (SERVICE, "backup out", "ballast: no passphrase: give --passphrase-file or BALLAST_PASSPHRASE"),
    (SERVICE, "restore out", "ballast: no passphrase: give --passphrase-file or BALLAST_PASSPHRASE"),
])
def test_without_a_standard_input_it_is_one_line(module: str, command: str, said: str, tmp_path: Path) -> None:
    known = {name: value for name, value in os.environ.items() if name != "BALLAST_PASSPHRASE"}
    if module == SERVICE:
        command += f" --home {tmp_path / 'home'}"
    if command.startswith("backup"):
        subprocess.run([sys.executable, "-m", SERVICE, "migrate", "--home", str(tmp_path / "home")], check=True)
    if command.startswith("restore"):
        (tmp_path / "out").touch()
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m {module} {command} <&-"], cwd=tmp_path, env=known,
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(("key", "code", "said"), [
    (b"\x04", 1, "ballast: no passphrase was typed; nothing was written"), (b"\x03", 130, ""),
], ids=["the input ends", "interrupted"])
def test_a_prompt_that_is_left_is_no_traceback(key: bytes, code: int, said: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    subprocess.run([sys.executable, "-m", SERVICE, "migrate", "--home", str(home)], check=True)
    child, terminal = pty.fork()
    if child == 0:
        os.environ.pop("BALLAST_PASSPHRASE", None)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # who starts these in the background ignores it
        os.execv(sys.executable, [
            sys.executable, "-m", SERVICE, "backup", str(tmp_path / "out"), "--home", str(home),
        ])
    shown = b""
    while b"passphrase of the backup: " not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, key)
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:  # the program has ended
        pass
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = shown.decode()
    assert os.waitstatus_to_exitcode(status) == code and "Traceback" not in text and said in text, text
    assert not (tmp_path / "out").exists()
