"""Settings and policy files."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from models.methods.catalogue import METHODS
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Kind, Task
from services.site_agent.rules.policy import REASONS, Refusal, SitePolicy
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import CsvSource, SettingsError, SiteSettings

GOOD = 'site_id = "plant-1"\nservers = ["tls://oem.example:4222"]\n[data]\nkind = "csv"\npath = "rows.csv"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "site.toml"


def test_paths_are_relative_to_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(GOOD.replace('site_id', 'ca = "/etc/ca.pem"\nledger = "out/ledger.jsonl"\nsite_id', 1))
    monkeypatch.chdir("/")
    settings = SiteSettings.from_toml(path)
    assert settings.ledger == path.parent / "out" / "ledger.jsonl"
    assert settings.ca == Path("/etc/ca.pem")
    assert isinstance(settings.data, CsvSource) and settings.data.path == path.parent / "rows.csv"
    assert settings.needs_tls


def test_every_path_is_taken_from_the_files_folder(path: Path) -> None:
    text = GOOD.replace("tls://", "wss://").replace('site_id', 'proxy = "http://p:1"\nproxy_auth = "word"\nsite_id', 1)
    path.write_text(text.replace('site_id', 'ca = "ca.pem"\nsite_id', 1))
    settings, folder = SiteSettings.from_toml(path), path.parent.resolve()
    assert (settings.ca, settings.proxy_auth) == (folder / "ca.pem", folder / "word")
    assert settings.log == folder / "site.log" and settings.nkey_seed == folder / "site.nk"
    assert (settings.policy, settings.exposure) == (folder / "policy.toml", folder / "exposure.sqlite")
    assert settings.asset_type == folder / "asset_type.toml"


@pytest.mark.parametrize(
    ("server", "authority", "needs_tls"),
    [("nats://a:1", "", False), ("ws://a:1", "", False), ("tls://a:1", "", True), ("wss://a:1", "", True),
     ("nats://a:1", 'ca = "ca.pem"\n', True), ("ws://a:1", 'ca = "ca.pem"\n', True)],
)
def test_who_names_an_authority_wants_no_plain_connection(
    path: Path, server: str, authority: str, needs_tls: bool
) -> None:
    path.write_text(authority + GOOD.replace("tls://oem.example:4222", server))
    assert SiteSettings.from_toml(path).needs_tls is needs_tls


def test_through_a_proxy_no_server_is_reached_in_plain(path: Path) -> None:
    for servers in ('"wss://a:1", "ws://b:1"', '"ws://a:1"', '"tls://a:1"'):
        path.write_text('proxy = "http://p:1"\n' + GOOD.replace('"tls://oem.example:4222"', servers))
        with pytest.raises(SettingsError, match="the servers must be wss://host:port"):
            SiteSettings.from_toml(path)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('site_id = "plant-1"', 'site_id = "Plant 1"', "site_id"),
        ("tls://oem.example:4222", "tls://secret@oem.example", "without user or password"),
        ("tls://oem.example:4222", "tls://:secret@oem.example", "without user or password"),
        ('site_id = "plant-1"\n', "", "site_id: Field required"),
        ("tls://oem.example:4222", "http://oem.example", "nats://host:port or tls://host:port"),
        ("tls://oem.example:4222", "tls://me:secret@oem.example", "without user or password"),
        ("tls://oem.example:4222", "tls://oem.example:99999", "nats://host:port or tls://host:port"),
        ("tls://oem.example:4222", "tls://:4222", "nats://host:port or tls://host:port"),
        ('site_id = "plant-1"', f'oem_key = "U{"A" * 55}"\nsite_id = "plant-1"', "oem_key: the public key's checksum"),
        ('"csv"', '"excel"', "data: Input tag 'excel'"),
        ('kind = "csv"', 'kind = "csv"\ncolour = 1', "data.csv.colour"),
        ('kind = "csv"', 'kind = "csv"\ntest_fraction = 1.5', "data.csv.test_fraction"),
        ('kind = "csv"', 'kind = "csv"\ndecimal = ","', "they must differ"),
        ('site_id = "plant-1"', 'site_id = "plant-1"\npolicy = "a\\u0000b"', "policy holds a NUL character"),
        ('site_id = "plant-1"', 'site_id = "plant-1"\nca = "a\\u0000b"', "ca holds a NUL character"),
        ('kind = "csv"\npath = "', 'kind = "csv"\npath = "\\u0000', "data.path holds a NUL character"),
        ("[data]", "[data", "is not TOML"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(path: Path, old: str, new: str, expected: str) -> None:
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SettingsError) as caught:
        SiteSettings.from_toml(path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_said(path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no settings file at .*: name this plant's, as in --config"):
        SiteSettings.from_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        SiteSettings.from_toml(path)
    with pytest.raises(SettingsError, match="no policy file at"):
        SitePolicy.from_toml(path.with_name("policy.toml"))


def test_the_default_policy_is_what_its_text_says(path: Path) -> None:
    path.write_text(default_policy_text(("pump",)))
    policy = SitePolicy.from_toml(path)
    assert policy.asset_types == ("pump",)
    assert policy.messages == get_args(Kind)
    assert (policy.reveal, policy.own_scores, policy.min_cohort) == (("sums",), False, 3)
    assert (policy.exposure_limit, policy.allow_unaccounted) == (0.0, True)
    lists = {"methods", "asset_types", "messages"}
    held = policy.model_dump(exclude=lists)
    assert held == SitePolicy().model_dump(exclude=lists), "what it states is what holds where a line is taken out"
    path.write_text(default_policy_text(("pump",), own_scores=True, seen_alone=True))
    assert (SitePolicy.from_toml(path).reveal, SitePolicy.from_toml(path).own_scores) == (("sums", "each site"), True)
    assert (policy.min_samples, policy.max_rounds_per_run) == (20, None)
    assert set(policy.methods) == set(METHODS), "each of them, for the plant to strike out"
    path.write_text(default_policy_text(("pump",), methods=("fedavg",)))
    assert SitePolicy.from_toml(path).methods == ("fedavg",)


@pytest.mark.parametrize("asked", [(), ("own_scores",), ("seen_alone",), ("figures",)])
def test_a_new_policy_tells_beyond_the_run_only_what_was_asked_for(path: Path, asked: tuple[str, ...]) -> None:
    path.write_text(default_policy_text(("pump",), **dict.fromkeys(asked, True)))
    policy = SitePolicy.from_toml(path)
    assert (policy.own_scores, "each site" in policy.reveal) == ("own_scores" in asked, "seen_alone" in asked)
    assert policy.tell_drift == policy.tell_exposure == ("figures" in asked)
    assert (policy.audit_every_round, policy.auditors, policy.one_class) == (False, (), False)
    assert (policy.min_samples, policy.min_test_samples, policy.min_class_samples) == (20, 5, 5)
    assert (policy.max_answers_per_run, policy.max_runs_per_day, policy.lift_limit) == (1000, 50, 2.0)


def test_an_empty_policy_allows_nothing(path: Path) -> None:
    path.write_text("")
    task = Task(
        kind="join", site_id="s", run_id="a" * 32, round=0, method="level-bundle", asset_type="pump", contract="",
        spec=TrainingSpec(),
    )
    with pytest.raises(Refusal) as caught:
        SitePolicy.from_toml(path).check_task(task, 0)
    assert caught.value.reason == REASONS["message_not_allowed"]


@pytest.mark.parametrize("text", ["min_samples = 0", "min_sample = 5", 'messages = ["dump"]', "max_message_bytes = 1"])
def test_a_policy_with_a_mistake_is_refused_and_not_half_read(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(SettingsError, match=text.split(" ")[0]):
        SitePolicy.from_toml(path)
