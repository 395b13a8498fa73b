"""`ballast key`: the keys that all API processes share, shown by their fingerprints, and replaced on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.backend.first_keys import begin_with_keys
from api.backend.wiring import open_backend
from api.cli.commands.key import DIGITS
from services.identity.service_keys import MEANINGS, PSEUDONYMS, WEBHOOKS, OtherKeyError, fingerprint, read_key
from services.process.settings import Settings


def settings_of(shell: Any) -> Settings:
    return Settings.load(shell.home, {})


def test_the_help_says_of_each_key_by_itself_what_follows_from_it(shell: Any) -> None:
    said = " ".join(shell.run("key", "replace", "--help")[1].split())
    assert "add the webhooks anew; pseudonyms.key: plants' pseudonyms" in said


def test_a_lost_key_is_replaced_by_a_command_with_an_entry(shell: Any) -> None:
    begin_with_keys(settings_of(shell))
    shown = {each["name"]: each for each in shell.read("key", "list")}
    assert {name: each["status"] for name, each in shown.items()} == dict.fromkeys(MEANINGS, "ok")
    assert all(each["here"] == each["fingerprint"] and each["home"].endswith(name) for name, each in shown.items())
    before = read_key(shell.home / WEBHOOKS)
    assert before.hex() not in shell.good("key", "list")
    secret = shell.good("webhook", "add", "https://watch.example.com/hook")
    (shell.home / WEBHOOKS).unlink()
    assert "webhooks.key is missing; copy the file" in shell.refused("webhook", "add", "https://other.example.com/")
    assert [each["status"] for each in shell.read("key", "list")] == ["failed", "ok"]
    with pytest.raises(OtherKeyError):
        begin_with_keys(settings_of(shell))
    assert shell.run("key", "replace", WEBHOOKS)[0] == 2, "a reason is needed"
    assert shell.run("key", "replace", WEBHOOKS, "--reason", " no ")[0] == 2, "of three characters at least"
    said = shell.read("key", "replace", WEBHOOKS, "--reason", "the disk was lost")
    assert said["webhooks_to_add_anew"] == 1
    begin_with_keys(settings_of(shell))
    after = read_key(shell.home / WEBHOOKS)
    assert after != before and said["fingerprint"] == fingerprint(WEBHOOKS, after)
    assert (shell.home / WEBHOOKS).stat().st_mode & 0o777 == 0o600
    with open_backend(settings_of(shell)) as backend:
        (entry,) = backend.store.audit.list_events(action="key.replace")
        assert (entry.target, entry.reason, entry.role) == ("key:webhooks.key", "the disk was lost", "administrator")
        assert entry.before is not None and entry.before["fingerprint"] == fingerprint(WEBHOOKS, before)
        assert entry.after is not None and entry.after["fingerprint"] == said["fingerprint"]
        assert after.hex() not in str(entry) and backend.store.audit.verify_chain().ok
    assert shell.good("webhook", "add", "https://other.example.com/") != secret
    assert sorted(path.name for path in shell.home.glob("*.key*")) == sorted(MEANINGS), "no scratch file is left"


def test_a_key_of_another_home_is_taken_from_its_file(shell: Any, tmp_path: Path) -> None:
    begin_with_keys(settings_of(shell))
    (tmp_path / "theirs").write_text("ab" * 32 + "\n")
    said = shell.good("key", "replace", PSEUDONYMS, "--file", str(tmp_path / "theirs"), "--reason", "the older one")
    assert "copy the file to the home folders of all other API processes, and start all of them again" in said
    assert read_key(shell.home / PSEUDONYMS).hex() == "ab" * 32
    assert "ab" * 32 not in said and fingerprint(PSEUDONYMS, bytes.fromhex("ab" * 32))[:DIGITS] + ";" in said
    begin_with_keys(settings_of(shell))
    assert "no key of 64" in shell.refused(
        "key", "replace", PSEUDONYMS, "--file", str(shell.home / "ballast.toml"), "--reason", "hope"
    )
    assert "the keys are webhooks.key" in shell.refused("key", "replace", "coordinator.nk", "--reason", "hope")


def test_a_key_that_is_taken_from_a_file_signs_webhooks_as_before(shell: Any, tmp_path: Path) -> None:
    begin_with_keys(settings_of(shell))
    shell.good("webhook", "add", "https://watch.example.com/hook")
    (tmp_path / "of-a-backup").write_bytes((shell.home / WEBHOOKS).read_bytes())
    (shell.home / WEBHOOKS).unlink()
    said = shell.read("key", "replace", WEBHOOKS, "--file", str(tmp_path / "of-a-backup"), "--reason", "lost")
    assert said["webhooks_to_add_anew"] == 0
    table = shell.good("key", "list")
    digits = fingerprint(WEBHOOKS, read_key(shell.home / WEBHOOKS))
    assert digits[:DIGITS] in table and digits[:DIGITS + 1] not in table, "so many digits are enough to compare"


def test_another_key_from_a_file_ends_the_secrets_of_webhooks_and_a_key_for_something_else_is_refused(
    shell: Any, tmp_path: Path
) -> None:
    begin_with_keys(settings_of(shell))
    shell.good("webhook", "add", "https://watch.example.com/hook")
    (tmp_path / "another").write_text("5a" * 32)
    said = shell.read("key", "replace", WEBHOOKS, "--file", str(tmp_path / "another"), "--reason", "the older one")
    assert said["webhooks_to_add_anew"] == 1
    held, pseudonyms = (shell.home / WEBHOOKS).read_bytes(), str(shell.home / PSEUDONYMS)
    said = shell.refused("key", "replace", WEBHOOKS, "--file", pseudonyms, "--reason", "the older one")
    assert said.endswith(f"{pseudonyms} holds the service's {PSEUDONYMS}: name a file with a {WEBHOOKS}")
    assert (shell.home / WEBHOOKS).read_bytes() == held


def full(*_: object) -> None:
    raise OSError(28, "No space left")


def test_who_is_stopped_in_the_midst_has_the_key_of_before_and_asks_again(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_with_keys(settings_of(shell))
    before = read_key(shell.home / WEBHOOKS)
    with monkeypatch.context() as broken:
        broken.setattr("api.backend.replaced_keys.os.replace", full)
        assert "No space left" in shell.refused("key", "replace", WEBHOOKS, "--reason", "lost")
    assert read_key(shell.home / WEBHOOKS) == before
    with pytest.raises(OtherKeyError):
        begin_with_keys(settings_of(shell))
    shell.good("key", "replace", WEBHOOKS, "--reason", "lost")
    begin_with_keys(settings_of(shell))
