"""``ballast-site``: every command, and one clear line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.contracts.keys.signing import new_seed_file
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello
from services.site_agent import actions, cli
from services.site_agent.cli import main
from services.site_agent.outgoing.ledger import Ledger
from tests.services.site_agent.commands import Capture, config, failure


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
    assert "does not know" not in capsys.readouterr().out
    policy.write_text(text.replace('"cohort-bundle"', '"cohort-bundel", "dreams"', 1))
    assert main(("check", "--json", *config(home))) == 0
    misspelt, strange = json.loads(capsys.readouterr().out)["findings"][-2:]
    assert "cohort-bundel, which this agent does not know; did you mean cohort-bundle?" in misspelt
    assert "dreams, which this agent does not know; methods are " in strange


def test_check_tells_keys_of_the_policy_that_nobody_can_have(home: Path, capsys: Capture) -> None:
    """A site with a mistyped auditor takes part in no audited run, and would never say why."""
    policy, key = home / "policy.toml", new_seed_file(home / "auditor.nk")
    text, other = policy.read_text(), "".join([key[:20], "A" if key[20] != "A" else "B", key[21:]])
    lines = [line for line in text.splitlines() if not line.startswith("auditors")]
    head, tail = f'auditors = ["{key}", "{other}"]\n', f'\n[peers]\nplant-2 = "{key}"\nplant-3 = "UKEY"\n'
    policy.write_text(head + "\n".join(lines) + tail)
    assert main(("check", "--json", *config(home))) == 0
    mistyped, short = json.loads(capsys.readouterr().out)["findings"][-2:]
    assert mistyped.startswith(f"take care: policy.toml, auditors, '{other}': the public key's checksum")
    assert short.startswith("take care: policy.toml, peers.plant-3, 'UKEY': not a NATS user public key")


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


@pytest.mark.parametrize(("arguments", "said"), [
    (("ledger", "show", "--last", "all"), "give a whole number at or above 1, not 'all'"),
    (("console", "--port", "0"), "give a port from 1 to 65535, not '0'"),
    (("console", "--port", "70000"), "give a port from 1 to 65535, not '70000'"),
    (("run", "--timeout", "soon"), "give a number of seconds above 0, not 'soon'"),
    (("run", "--timeout", "0"), "give a number of seconds above 0, not '0'"),
])
def test_a_number_that_is_none_is_told_what_would_be_one(
    arguments: tuple[str, ...], said: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


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
