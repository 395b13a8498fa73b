"""``ballast-site``: every command, and one clear line for every mistake."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.contracts.access import enrolment
from services.contracts.keys.signing import check_public_key
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello
from services.site_agent import actions, cli
from services.site_agent.cli import main
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource, ParquetSource, SimulatorSource, SiteSettings
from services.site_agent.setup import enrol as enrolling
from services.site_agent.setup.site_setup import SiteSetup, create_site

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def home(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path], capsys: Capture
) -> Path:
    """A site over a CSV file, made by ``init``."""
    data = write_csv(make_table(60))
    arguments = ["--dir", str(tmp_path / "home"), "--asset-type", str(asset_type_file), "--data", str(data)]
    assert main(["init", "--site-id", "plant-1", *arguments]) == 0
    capsys.readouterr()
    return tmp_path / "home"


def config(home: Path) -> list[str]:
    return ["--config", str(home / "site.toml")]


def failure(capsys: Capture, *arguments: str) -> str:
    """The one line on stderr of a command that fails."""
    assert main(arguments) == 1
    out, said = capsys.readouterr()
    assert said.startswith("ballast-site: ") and said.count("\n") == 1, said
    return said


def test_init_makes_a_site_that_runs_as_it_is(home: Path, capsys: Capture) -> None:
    settings = SiteSettings.from_toml(home / "site.toml")
    assert isinstance(settings.data, CsvSource) and settings.data.units["flow"] == "L/min"
    assert SitePolicy.from_toml(settings.policy).asset_types == ("pump",)
    assert main(["check", *config(home)]) == 0
    assert main(["key", "show", *config(home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    check_public_key(lines[-1])
    assert any(line.startswith("training: 44 rows") for line in lines)


def test_init_prints_the_public_key_on_its_last_line(tmp_path: Path, capsys: Capture) -> None:
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), "--data", str(tmp_path / "plant-1")]) == 0
    check_public_key(capsys.readouterr().out.splitlines()[-1])
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert isinstance(settings.data, SimulatorSource) and settings.data.path == tmp_path / "plant-1"


def test_init_knows_parquet_and_writes_servers_authority_and_methods(tmp_path: Path) -> None:
    arguments = ["--server", "tls://a:1", "--server", "tls://b:2", "--ca", str(tmp_path / "ca.pem")]
    arguments += ["--data", str(tmp_path / "x.parquet"), "--allow-method", "fdr-admm"]
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), *arguments]) == 0
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert settings.servers == ("tls://a:1", "tls://b:2") and settings.ca == tmp_path / "ca.pem"
    assert isinstance(settings.data, ParquetSource)
    assert SitePolicy.from_toml(settings.policy).methods == ("fdr-admm",)


WIDER = {
    "--own-scores": {"own_scores"}, "--seen-alone": {"reveal"}, "--tell-figures": {"tell_drift", "tell_exposure"},
}
"""What each switch lets out that stays without it: the policy's lines that it changes."""


@pytest.mark.parametrize("switch", WIDER)
def test_a_switch_widens_its_own_lines_of_the_policy_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    """Of a site that is made by itself, and of one that is enrolled."""
    found: list[dict[str, Any]] = []
    enrolled: list[SiteSetup] = []

    def enrols(setup: SiteSetup, url: str, code: str) -> enrolling.Enrolled:
        enrolled.append(setup)
        create_site(setup)
        return enrolling.Enrolled("U", "pump", ("wss://a:1",), goes_by_proxy=False)

    monkeypatch.setattr(enrolling, "enrol", enrols)
    code = f"blse_plant-7_{'A' * 43}_{'A' * 43}"
    monkeypatch.setattr(enrolment, "read_code", lambda text: SimpleNamespace(site_id="plant-7"))
    for number, switches in enumerate(([], [switch])):
        for name, command in (("init", ["--site-id", "p"]), ("enrol", ["--url", "https://a:1", "--code", code])):
            home = tmp_path / f"{name}-{number}"
            assert main([name, *command, "--dir", str(home), "--data", str(tmp_path / "x.csv"), *switches]) == 0
            found.append(SitePolicy.from_toml(home / "policy.toml").model_dump())
    assert [setup.site_id for setup in enrolled] == ["plant-7"] * 2
    for narrow, wide in zip(found[:2], found[2:], strict=True):
        assert {name for name in wide if wide[name] != narrow[name]} == WIDER[switch]
        assert {str(wide[name]) for name in WIDER[switch]} <= {"True", "('sums', 'each site')"}


def test_init_overwrites_nothing(home: Path, capsys: Capture) -> None:
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    said = failure(capsys, "init", "--site-id", "plant-1", "--dir", str(home))
    assert "exists already; nothing is overwritten" in said
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--site-id", "Plant One"], "site_id"),
        (["--site-id", "p", "--server", "oem.example"], "nats://host:port"),
        (["--site-id", "p", "--asset-type", "nowhere.toml"], "no asset type file"),
        (["--site-id", "p", "--allow-method", "Bad Name"], "methods"),
        (["--site-id", "p", "--allow-method", "afl", "--allow-method", "cohort-bundel"], "did you mean cohort-bundle"),
    ],
)
def test_init_with_a_mistake_writes_nothing(
    tmp_path: Path, capsys: Capture, arguments: list[str], expected: str
) -> None:
    assert expected in failure(capsys, "init", "--dir", str(tmp_path / "p"), *arguments)
    assert not (tmp_path / "p").exists()


def test_init_into_a_place_that_cannot_be_written_says_so(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write to" in failure(capsys, "init", "--site-id", "p", "--dir", str(tmp_path / "file" / "p"))


def test_a_folder_that_is_a_circle_of_links_and_a_name_of_two_lines_are_one_line(
    tmp_path: Path, capsys: Capture
) -> None:
    circle, two_lines = tmp_path / "circle", tmp_path / "two\nlines"
    circle.symlink_to(circle)
    two_lines.write_text("no settings")
    said = failure(capsys, "init", "--site-id", "plant-1", "--dir", str(circle))
    assert said.startswith("ballast-site: cannot write")
    said = failure(capsys, "check", "--config", str(two_lines))
    assert said.count("\n") == 1 and "two lines is not TOML" in said


def test_check_says_on_the_plants_own_screen_what_does_not_fit(
    home: Path, capsys: Capture, write_csv: Any, make_table: Any
) -> None:
    rows = make_table(60)
    rows[5][0] = "broken"
    write_csv(rows)
    assert "line 6: column 'flow' holds text" in failure(capsys, "check", *config(home))
    write_csv(make_table(12))
    assert "the policy asks for 20" in failure(capsys, "check", *config(home))
    write_csv(make_table(60, classes=("leak",)))
    assert "one_class = true" in failure(capsys, "check", *config(home))
    policy = home / "policy.toml"
    policy.write_text(policy.read_text().replace("one_class = false", "one_class = true"))
    assert main(("check", *config(home))) == 0
    assert "all rows of the training part are leak: other classes are learnt from" in capsys.readouterr().out


def test_health_says_it_in_json_too(home: Path, capsys: Capture) -> None:
    assert "was ever connected" in failure(capsys, "health", *config(home))
    assert main(("health", *config(home), "--json")) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["connected"] is False and "was ever connected" in told["reason"]
    (home / "site.alive").touch()
    assert main(("health", *config(home), "--json")) == 0
    assert 0 <= json.loads(capsys.readouterr().out)["seconds_since_connected"] < 30


def test_check_tells_methods_that_this_agent_does_not_know_and_goes_on(home: Path, capsys: Capture) -> None:
    policy = home / "policy.toml"
    text = policy.read_text()
    assert main(("check", *config(home))) == 0
    assert "take care" not in capsys.readouterr().out
    policy.write_text(text.replace('"cohort-bundle"', '"cohort-bundel", "dreams"', 1))
    assert main(("check", "--json", *config(home))) == 0
    misspelt, strange = json.loads(capsys.readouterr().out)["findings"][-2:]
    assert "cohort-bundel, which this agent does not know; did you mean cohort-bundle?" in misspelt
    assert "dreams, which this agent does not know; methods are " in strange


def test_check_holds_the_units_of_the_settings_to_the_contract(home: Path, capsys: Capture) -> None:
    path = home / "site.toml"
    path.write_text(path.read_text().replace('flow = "L/min"', 'flow = "gpm"'))
    assert "flow is in 'gpm', the contract wants 'L/min'" in failure(capsys, "check", *config(home))


def test_mistakes_in_the_files_stop_run_with_one_line(home: Path, capsys: Capture) -> None:
    assert "no settings file" in failure(capsys, "run", "--config", str(home / "other.toml"))
    seed = (home / "site.nk").read_text()
    (home / "site.nk").write_text("not a seed")
    assert "does not hold an nkey seed" in failure(capsys, "run", *config(home))
    (home / "site.nk").write_text(seed)
    (home / "policy.toml").write_text("min_samples = 0")
    assert "min_samples" in failure(capsys, "run", *config(home))
    (home / "asset_type.toml").unlink()
    assert "min_samples" in failure(capsys, "run", *config(home))
    assert (home / "site.log").read_text().count("ended: ") == 3


def test_a_wrong_command_line_is_exit_code_2(capsys: Capture) -> None:
    waits = [["run", "--timeout", seconds] for seconds in ("-1", "0", "inf", "nan", "soon")]
    for arguments in ([], *waits, ["ledger", "show", "--last", "0"], ["console", "--port", "0"], ["ledger"], ["fly"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(("failure", "code", "said"), [
    (KeyboardInterrupt(), 130, ""), (BrokenPipeError(), 7, ""),
    (PermissionError(13, "Permission denied", "/srv/site.log"), 1, "ballast-site: /srv/site.log: Permission denied\n"),
])
def test_what_ends_a_command_from_outside_has_its_exit_code_and_no_traceback(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int, said: str
) -> None:
    def fail(_: object) -> int:
        raise failure

    monkeypatch.setattr(actions, "health", fail)
    monkeypatch.setattr(cli, "reader_left", lambda: 7)
    assert main(["health"]) == code
    assert capsys.readouterr() == ("", said)


def test_a_drift_is_counted_anew_only_where_that_is_asked_for(capsys: Capture, home: Path) -> None:
    began = []
    for more in ([], [], ["--from-now"], []):
        assert main(["drift", "--json", *config(home), *more]) == 0
        began.append(json.loads(capsys.readouterr().out)["since"])
    assert began[0] == began[1] != began[2] == began[3]


def test_ledger_verify_and_show(home: Path, capsys: Capture) -> None:
    path = home / "ledger.jsonl"
    hello = Hello(site_id="plant-1", version="1")
    with Ledger(path) as ledger:
        for _ in range(3):
            ledger.append(hello, encode(hello))
    assert main(["ledger", "verify", *config(home)]) == 0
    assert capsys.readouterr().out.startswith(f"sound: 3 entries, {3 * len(encode(hello))} bytes left")
    assert main(["ledger", "show", str(path), "--last", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sequence"] == 3
    assert main(["ledger", "show", *config(home)]) == 0
    assert capsys.readouterr().out.count("hello") == 3

    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    assert "entry 1 is missing" in failure(capsys, "ledger", "verify", str(path))
    assert "no ledger at" in failure(capsys, "ledger", "verify", str(home / "none.jsonl"))


def test_the_written_settings_are_plain_toml_whatever_the_path(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" Ölpumpe' / "rows.csv"
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), "--data", str(odd)]) == 0
    text = (tmp_path / "p" / "site.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["data"]["path"] == str(odd)


def test_a_reader_that_has_seen_enough_is_no_error(home: Path) -> None:
    """A pipe that is shut before the first line, as ``head`` leaves it."""
    import os
    import subprocess
    import sys

    ledger = home / "ledger.jsonl"
    with Ledger(ledger) as written:
        for _ in range(3):
            hello = Hello(site_id="plant-1", version="1")
            written.append(hello, encode(hello))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "services.site_agent", "ledger", "show", str(ledger)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
