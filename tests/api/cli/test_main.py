from __future__ import annotations

import subprocess
import sys

import pytest

from api.cli.main import COMMANDS, main


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: ballast {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["token"], ["token", "nonsense"], ["--", "token"], ["--home"]])
def test_wrong_usage_ends_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: ballast" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    heavy = {"fastapi", "sqlalchemy", "mlflow", "prefect", "numpy", "alembic", "scipy", "httpx"}
    program = (
        "import sys\nfrom api.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"found = {heavy!r} & set(sys.modules)\nsys.exit(', '.join(sorted(found)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_on_the_store_need_no_web_server() -> None:
    """The command line stands beside the API, not on it."""
    program = (
        "import sys\nfrom api.cli import asset_type, audit, model, plan, run, site, token\n"
        "sys.exit(', '.join({'fastapi', 'starlette', 'mlflow', 'prefect'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: object) -> None:
    command = f"{sys.executable} -m api.cli.main migrate --home {tmp_path} | true"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stderr == b""
