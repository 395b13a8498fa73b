"""A plant makes its next key while the present one works, and changes over when the OEM has it."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from services.contracts.errors import NotFoundError
from services.contracts.keys.signing import new_seed_file, public_key
from services.site_agent.cli import main
from services.site_agent.setup import key_change
from services.site_agent.setup.key_change import make_next_key, next_seed, use_next_key


def test_the_next_key_waits_beside_the_present_one_and_takes_its_place(tmp_path: Path) -> None:
    seed = tmp_path / "site.nk"
    present = new_seed_file(seed)
    waiting = make_next_key(seed)
    assert (public_key(seed), make_next_key(seed)) == (present, waiting) and waiting != present
    assert next_seed(seed).stat().st_mode & 0o077 == 0
    assert use_next_key(seed) == waiting == public_key(seed)
    assert not next_seed(seed).exists() and seed.stat().st_mode & 0o077 == 0
    with pytest.raises(NotFoundError, match="`ballast-site key new` makes one"):
        use_next_key(seed)
    assert public_key(seed) == waiting


def test_the_next_key_is_made_once(tmp_path: Path) -> None:
    """By commands at the same moment, too: one found the file of the other while it was empty, or refused its own."""
    for turn in range(20):
        seed = tmp_path / f"{turn}.nk"
        with ThreadPoolExecutor(4) as pool:
            made = set(pool.map(make_next_key, [seed] * 4))
        assert made == {public_key(next_seed(seed))}


def test_a_key_is_made_and_used_by_one_command_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, held = tmp_path / "site.nk", list[bool]()
    new_seed_file(seed)

    def locked(file: IO[str], kind: int) -> None:
        held.append(kind == fcntl.LOCK_EX and not next_seed(seed).exists())

    monkeypatch.setattr(key_change, "fcntl", SimpleNamespace(flock=locked, LOCK_EX=fcntl.LOCK_EX))
    make_next_key(seed)
    use_next_key(seed)
    assert held == [True, False], "before it is looked whether a key waits"


def test_the_commands_tell_what_the_oem_has_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To stderr: on stdout is the key alone, as scripts take it."""
    folder = tmp_path / "p"
    assert main(["init", "--site-id", "plant-7", "--dir", str(folder)]) == 0
    present = capsys.readouterr().out.splitlines()[-1]

    def said(*action: str) -> tuple[str, str]:
        assert main(["key", *action, "--config", str(folder / "site.toml")]) == 0
        out, err = capsys.readouterr()
        assert err == "" or err.startswith("ballast-site: note: ") and err.count("\n") == 1
        return out, err

    assert said("show") == (f"{present}\n", "")
    following, told = said("new")
    enter = f"ballast site rotate-key plant-7 --key {following.strip()}"
    assert following.strip() != present and enter in told and "the present key stays in use" in told
    shown, told = said("show")
    assert shown == f"{present}\n" and enter in told and "waits for `ballast-site key use`" in told
    used, told = said("use", "--untried")
    assert following.strip() in used and enter in told and "whether the OEM has this one was not asked" in told
    assert said("show") == (following, "")
