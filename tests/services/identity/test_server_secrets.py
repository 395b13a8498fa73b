"""The secrets of the embedded servers: long, different, kept, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.contracts.errors import UnavailableError
from services.identity.server_secrets import ServerSecrets


def test_they_are_made_once_and_differ(tmp_path: Path) -> None:
    secrets = ServerSecrets(tmp_path / "secrets")
    assert {path.name for path in secrets.make()} == {"prefect", "mlflow", "mlflow-forms"}
    first = (secrets.prefect, secrets.mlflow, secrets.mlflow_form_key)
    assert secrets.prefect.startswith("ballast:")
    assert len({text.removeprefix("ballast:") for text in first}) == 3
    assert all(len(text.removeprefix("ballast:")) == 64 for text in first)
    assert secrets.make() == frozenset()
    assert (secrets.prefect, secrets.mlflow, secrets.mlflow_form_key) == first
    assert first[1] not in repr(secrets)


def test_one_that_was_deleted_is_made_anew_and_told(tmp_path: Path) -> None:
    secrets = ServerSecrets(tmp_path)
    secrets.make()
    before = secrets.mlflow
    secrets.mlflow_file.unlink()
    with pytest.raises(UnavailableError, match="`ballast up` makes it"):
        _ = secrets.mlflow
    assert secrets.make() == {secrets.mlflow_file}
    assert secrets.mlflow != before


@pytest.mark.parametrize("text", ["", "ballast:", "ballast:abc"])
def test_a_short_one_is_refused(tmp_path: Path, text: str) -> None:
    secrets = ServerSecrets(tmp_path)
    secrets.make()
    secrets.prefect_file.write_text(text)
    with pytest.raises(UnavailableError, match="cut short"):
        _ = secrets.prefect


def test_all_but_the_whole_of_a_secret_is_cut_short(tmp_path: Path) -> None:
    """By a single character, as an editor may leave it, and with the user in front counted apart."""
    secrets = ServerSecrets(tmp_path)
    secrets.make()
    for path in (secrets.prefect_file, secrets.mlflow_file, secrets.mlflow_form_file):
        whole = path.read_text()
        path.write_text(whole.strip()[:-1] + "\n")
        with pytest.raises(UnavailableError, match=f"{path} is cut short"):
            secrets.check()
        path.write_text(whole)
    secrets.check()


def test_nobody_else_on_the_host_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    secrets = ServerSecrets(folder)
    secrets.make()
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in (secrets.prefect_file, secrets.mlflow_file, secrets.mlflow_form_file):
        assert path.stat().st_mode & 0o777 == 0o600
    folder.chmod(0o755)
    secrets.make()
    assert folder.stat().st_mode & 0o077 == 0
