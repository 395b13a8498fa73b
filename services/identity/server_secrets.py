"""What opens the embedded Prefect and MLflow servers: made at the first start, kept in the home folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from services.contracts.errors import UnavailableError
from services.process.private_files import made_once, private_folder

SECRET_BYTES = 32  # 256 bits, which nobody guesses
USER = "ballast"
"""The one user of both servers."""


class ServerSecrets:
    """The secrets of one home folder, a file (mode 0600) each. To renew one, delete its file and start again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def prefect_file(self) -> Path:
        """User and password of the Prefect server, ``ballast:...``, as its pages ask for them."""
        return self._folder / "prefect"

    @property
    def mlflow_file(self) -> Path:
        """Password of the MLflow server's user ``ballast``."""
        return self._folder / "mlflow"

    def make(self) -> frozenset[Path]:
        """Make the secrets that are missing; the files that this call has made.

        Raises
        ------
        UnavailableError
            When the folder cannot be written, or belongs to somebody else.
        """
        private_folder(self._folder)
        made = {
            self.prefect_file: made_once(self.prefect_file, lambda: f"{USER}:{_new()}\n"),
            self.mlflow_file: made_once(self.mlflow_file, lambda: f"{_new()}\n"),
            self.mlflow_form_file: made_once(self.mlflow_form_file, lambda: f"{_new()}\n"),
        }
        return frozenset(path for path, is_new in made.items() if is_new)

    def check(self) -> None:
        """Raise ``UnavailableError`` for a secret that cannot be read, or is cut short."""
        _ = self.prefect, self.mlflow, self.mlflow_form_key

    @property
    def prefect(self) -> str:
        """Prefect's basic auth string, user and password."""
        return _read(self.prefect_file, len(f"{USER}:"))

    @property
    def mlflow(self) -> str:
        """Password of MLflow's user."""
        return _read(self.mlflow_file)

    @property
    def mlflow_form_key(self) -> str:
        """Key that MLflow signs the tokens of its forms with."""
        return _read(self.mlflow_form_file)

    @property
    def mlflow_form_file(self) -> Path:
        """File with that key."""
        return self._folder / "mlflow-forms"


def _new() -> str:
    return secrets.token_hex(SECRET_BYTES)


def _read(path: Path, before: int = 0) -> str:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise UnavailableError(f"the secret {path} cannot be read; `ballast up` makes it: {error}") from error
    if len(text) < before + 2 * SECRET_BYTES:
        raise UnavailableError(f"the secret {path} is cut short; delete it and start again, and it is made anew")
    return text
