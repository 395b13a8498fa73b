from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_ctrl_c_ends_a_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the code of a shell for SIGINT, and not that of a failure: a script tells them apart."""
    def stopped(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("api.cli.commands.audit.run", stopped)
    assert main(["audit", "list"]) == 130
    assert capsys.readouterr() == ("", "")


def test_help_imports_nothing_heavy() -> None:
    heavy = {"fastapi", "sqlalchemy", "mlflow", "prefect", "numpy", "alembic", "scipy", "httpx"}
    program = (
        "import sys\nfrom api.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"found = {heavy!r} & set(sys.modules)\nsys.exit(', '.join(sorted(found)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("modules", "heavy"), [
    ("asset_type, audit, model, plan, run, site, token", "fastapi starlette mlflow prefect"),
    ("asset_type, audit, plan, run, site, token", "scipy cryptography models.methods.catalogue"),
])
def test_commands_on_the_store_import_little(modules: str, heavy: str) -> None:
    """The command line stands beside the API, not on it; what costs a second is for those who train or serve."""
    program = (
        f"import sys\nfrom api.cli.commands import {modules}\n"
        f"sys.exit(', '.join(set({heavy.split()!r}) & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "heavy"), [
    ("site list", "numpy models services.contracts.plans.plan services.bus nkeys"),
    ("site list", "services.round_store.tables.runs services.round_store.tables.plans services.round_store.runs.runs"),
    ("plan list", "services.contracts.versions.model_version services.bus sqlalchemy.dialects.postgresql"),
    ("run list", "services.contracts.versions.model_version services.bus sqlalchemy.dialects.postgresql"),
])
def test_a_list_imports_what_it_shows(words: str, heavy: str, tmp_path: Path) -> None:
    """What half of a short call went for: every repository, every table, the other server's dialect, NumPy."""
    asked = [*words.split(), "--home", str(tmp_path)]
    assert main(["migrate", "--home", str(tmp_path)]) == 0
    program = (
        f"import sys\nfrom api.cli.main import main\nassert main({asked!r}) == 0\n"
        f"sys.exit(', '.join(set({heavy.split()!r}) & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_collects_no_garbage_while_it_imports_and_does_from_then_on(tmp_path: Path) -> None:
    """Called from another program it leaves the collector as it is."""
    program = (
        "import gc, sys\nfrom api.cli import main as cli\nload, seen = cli._module, []\n"
        "cli._module = lambda name: seen.append(gc.isenabled()) or load(name)\n"
        f"words = ['migrate', '--home', {str(tmp_path)!r}]\nsys.argv[1:] = words\n"
        "assert cli.main(words) == 0 and gc.isenabled() and gc.get_freeze_count() == 0\n"
        "assert cli.main() == 0 and gc.isenabled() and gc.get_freeze_count() > 1000\n"
        "assert seen == [True, False], seen\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: object) -> None:
    command = f"{sys.executable} -m api.cli.main migrate --home {tmp_path} | true"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("module", ["api.cli.main", "services.site_agent"])
def test_a_full_disk_is_one_line(module: str) -> None:
    command = f"{sys.executable} -m {module} completion bash > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    name = {"api.cli.main": "ballast", "services.site_agent": "ballast-site"}[module]
    assert (done.returncode, done.stderr) == (1, f"{name}: nothing more can be written: No space left on device\n")


@pytest.mark.parametrize("module", ["api.cli.main", "services.site_agent"])
def test_a_command_runs_without_a_standard_output(module: str) -> None:
    command = f"{sys.executable} -m {module} completion bash >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["run", "list", "--limit", "0"], ["audit", "list", "--limit", "-1"], ["audit", "list", "--offset", "-1"]],
)
def test_a_number_of_rows_that_means_nothing_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and "give a whole number at or above" in capsys.readouterr().err


def test_both_commands_say_their_version() -> None:
    said = []
    for module in ("api.cli.main", "services.site_agent"):
        done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert [words[0] for words in said] == ["ballast", "ballast-site"]
    assert said[0][1] == said[1][1] and said[0][1][0].isdigit()


def test_the_help_of_up_says_the_ports(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--help"])
    said = capsys.readouterr().out
    for words in ("8000   [api] port", "4222   [nats] port", "4200   [prefect] port", "BALLAST_MLFLOW_PORT"):
        assert words in said
