"""``ballast-site init``: a site that runs as it is, or nothing at all."""

from __future__ import annotations

import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.contracts.access import enrolment
from services.contracts.keys.signing import check_public_key
from services.contracts.machines.asset_type import AssetType
from services.site_agent import actions
from services.site_agent.cli import main
from services.site_agent.own_use.first_look import misfit_lines
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource, ParquetSource, SimulatorSource, SiteSettings
from services.site_agent.setup import enrol as enrolling
from services.site_agent.setup.site_setup import SiteSetup, create_site
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.commands import Capture, config, failure


def test_init_makes_a_site_that_runs_as_it_is(home: Path, capsys: Capture) -> None:
    settings = SiteSettings.from_toml(home / "site.toml")
    assert isinstance(settings.data, CsvSource) and settings.data.units["flow"] == "L/min"
    assert SitePolicy.from_toml(settings.policy).asset_types == ("pump",)
    assert main(["check", *config(home)]) == 0
    assert main(["key", "show", *config(home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    check_public_key(lines[-1])
    assert any(line.startswith("training: 44 rows") for line in lines)


def test_nobody_else_can_write_what_the_program_makes_whatever_the_umask(tmp_path: Path) -> None:
    """Who could write the policy would let rows leave."""
    words = ["-m", "services.site_agent", "init", "--site-id", "p", "--dir", str(tmp_path / "a" / "p")]
    subprocess.run([sys.executable, *words], check=True, capture_output=True, umask=0)
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert made == {"p": 0o700, "site.toml": 0o600, "policy.toml": 0o600, "site.nk": 0o600}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_init_prints_the_public_key_on_its_last_line(tmp_path: Path, capsys: Capture) -> None:
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), "--data", str(tmp_path / "plant-1")]) == 0
    check_public_key(capsys.readouterr().out.splitlines()[-1])
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert isinstance(settings.data, SimulatorSource) and settings.data.path == tmp_path / "plant-1"


def test_without_data_the_settings_name_a_file_beside_them_wherever_they_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("of something else")
    assert main(["init", "--site-id", "p", "--dir", "p"]) == 0
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert isinstance(settings.data, CsvSource) and settings.data.path == tmp_path / "p" / "data.csv"


def test_of_data_that_fit_no_misfit_is_told(tmp_path: Path) -> None:
    assert misfit_lines(None, tmp_path) == []
    assert misfit_lines("no rows", tmp_path)[0] == "The data do not fit yet: no rows"


def test_init_knows_parquet_and_writes_servers_authority_and_methods(tmp_path: Path) -> None:
    arguments = ["--server", "tls://a:1", "--server", "tls://b:2", "--ca", str(tmp_path / "ca.pem")]
    arguments += ["--data", str(tmp_path / "x.parquet"), "--allow-method", "fdr-admm"]
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), *arguments]) == 0
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert settings.servers == ("tls://a:1", "tls://b:2") and settings.ca == tmp_path / "ca.pem"
    assert isinstance(settings.data, ParquetSource)
    assert SitePolicy.from_toml(settings.policy).methods == ("fdr-admm",)


def test_files_that_were_named_and_are_not_there_are_told(tmp_path: Path, capsys: Capture) -> None:
    """They may come before the agent runs, so the site is made."""
    data, authority = tmp_path / "x.csv", tmp_path / "ca.pem"
    named = ["--data", str(data), "--ca", str(authority)]
    for number, missing in enumerate(({"--data": data, "--ca": authority}, {"--ca": authority}, {})):
        for path in {data, authority} - set(missing.values()):
            path.touch()
        assert main(["init", "--site-id", "p", "--dir", str(tmp_path / f"p{number}"), *named]) == 0
        told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("There is no ")]
        assert told == [
            f"There is no {path} yet, which {option} named: put it there before the agent runs."
            for option, path in missing.items()
        ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_data_that_nobody_may_look_for_are_told_and_the_site_is_made(
    tmp_path: Path, asset_type_file: Path, capsys: Capture, kind: str
) -> None:
    """As in a folder that is closed to the agent's user, of which root, who may run tests, knows nothing."""
    data = tmp_path / f"{'x' * 300}.{kind}"
    named = ["--data", str(data), "--asset-type", str(asset_type_file)]
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), *named]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1] == f"The data do not fit yet: {data} cannot be read: File name too long"
    check_public_key(told[-1])
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    with pytest.raises(VaultError, match="cannot be read"):
        Vault(settings.data, AssetType.from_toml(asset_type_file)).current()


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


def test_a_plant_is_told_what_its_proxy_still_needs_and_no_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The enrolment itself is made either way, and would be followed by an agent that never connects."""
    by_proxy = False

    def enrols(setup: SiteSetup, url: str, code: str) -> enrolling.Enrolled:
        create_site(setup)
        return enrolling.Enrolled("U", "pump", ("tls://a:1",), goes_by_proxy=by_proxy)

    monkeypatch.setattr(enrolling, "enrol", enrols)
    monkeypatch.setattr(enrolment, "read_code", lambda text: SimpleNamespace(site_id="plant-7"))
    for number, (proxy, by_proxy, has_package) in enumerate((
        ([], False, False), (["--proxy", "http://p:1"], False, False), (["--proxy", "http://p:1"], True, False),
        (["--proxy", "http://p:1"], True, True),
    )):
        monkeypatch.setattr(actions, "_has_web_socket", lambda has=has_package: has)
        home = tmp_path / str(number)
        assert main(["enrol", "--url", "https://a:1", "--code", "x", "--dir", str(home), *proxy]) == 0
        told = capsys.readouterr().out
        assert ("no WebSocket (wss://) but tls://a:1" in told) == (bool(proxy) and not by_proxy)
        assert ("pip install 'ballast-diagnosis[websocket]'" in told) == (by_proxy and not has_package)


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


@pytest.mark.parametrize(("name", "kind"), [("rows.TXT", "csv"), ("rows.tsv", "csv"), ("rows.xlsx", ""), ("rows", "")])
def test_a_file_is_a_table_by_its_end_and_another_is_refused(
    tmp_path: Path, capsys: Capture, name: str, kind: str
) -> None:
    """A folder of the simulator is none: of a spreadsheet it was said that plant.json in it cannot be read."""
    (tmp_path / name).touch()
    made = ["init", "--site-id", "p", "--dir", str(tmp_path / "p"), "--data", str(tmp_path / name)]
    if kind:
        assert main(made) == 0
        assert SiteSettings.from_toml(tmp_path / "p" / "site.toml").data.kind == kind
    else:
        assert f"{name} is no table that is read here: save it as CSV" in failure(capsys, *made)
        assert not (tmp_path / "p").exists()


def test_init_into_a_place_that_cannot_be_written_says_so(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write to" in failure(capsys, "init", "--site-id", "p", "--dir", str(tmp_path / "file" / "p"))


def test_the_written_settings_are_plain_toml_whatever_the_path(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" Ölpumpe' / "rows.csv"
    assert main(["init", "--site-id", "p", "--dir", str(tmp_path / "p"), "--data", str(odd)]) == 0
    text = (tmp_path / "p" / "site.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["data"]["path"] == str(odd)
