"""Settings of the OEM's side: one TOML file in one home folder, each with a working default.

Order: a value in the environment (``BALLAST_DATABASE_URL`` and the like, :mod:`services.process.environment`) over
``ballast.toml`` over the default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from services.contracts.access.loopback import is_loopback as is_loopback
from services.contracts.access.oidc import OidcSettings
from services.contracts.errors import InvalidInputError
from services.contracts.reading import toml_values
from services.contracts.true_numbers import TrueNumbers
from services.process.environment import add_environment, explain_settings
from services.process.log_lines import LoggingSettings
from services.process.tracing import TracingSettings

FILE_NAME = "ballast.toml"
HOME_VARIABLE = "BALLAST_HOME"
WILDCARDS = ("0.0.0.0", "::")
"""Hosts by which a server listens on every address of this machine."""


def reached_at(host: str) -> str:
    """Where this host reaches what listens on ``host``."""
    return "127.0.0.1" if host in WILDCARDS else host


def bracketed(host: str) -> str:
    """Host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _only_loopback(host: str) -> str:
    if not is_loopback(host):
        raise ValueError(
            f"this embedded server listens on the loopback alone (127.0.0.1), not on {host}; "
            "to reach its pages from elsewhere use a tunnel, or name a server of your own"
        )
    return host


LoopbackHost = Annotated[str, AfterValidator(_only_loopback)]


class _Section(TrueNumbers):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NatsSettings(_Section):
    """The plant link. With ``servers`` empty ``ballast up`` starts the embedded server."""

    servers: tuple[str, ...] = ()
    plant_servers: tuple[str, ...] = Field(
        default=(), description="the link's addresses as plants reach them, tls:// and wss://; none: `servers`"
    )
    host: str = "127.0.0.1"
    port: int = Field(default=4222, ge=1, le=65535)
    websocket_port: int | None = Field(
        default=None, ge=1, le=65535, description="plants may connect there by WebSocket over TLS; None: nowhere"
    )
    host_names: tuple[str, ...] = Field(default=("localhost", "127.0.0.1"), description="names in the certificate")
    seed_file: Path | None = Field(default=None, description="coordinator's nkey seed, for a server that is not ours")
    ca_file: Path | None = None


class _Embedded(_Section):
    host: LoopbackHost = "127.0.0.1"
    port: int = Field(ge=1, le=65535)

    @property
    def own_url(self) -> str:
        """Address of the embedded server."""
        return f"http://{bracketed(self.host)}:{self.port}"


def _without_password(address: str) -> str:
    if "@" in urlsplit(address).netloc:
        raise ValueError("an address with a user or password would stand in logs: write user:password to auth_file")
    return address


class PrefectSettings(_Embedded):
    """The orchestrator. With ``api_url`` empty ``ballast up`` starts a Prefect server."""

    api_url: Annotated[str, AfterValidator(_without_password)] = ""
    auth_file: Path | None = Field(default=None, description="file with user:password, for a server that is not ours")
    database_url: str = Field(default="", description="of the embedded server; empty: SQLite in the home folder")
    port: int = Field(default=4200, ge=1, le=65535)
    runs_at_once: int = Field(
        default=20, ge=1, description="runs that a flows process drives at once, each a process of some 300 MB"
    )


class MlflowSettings(_Embedded):
    """The registry. With ``tracking_uri`` empty it is SQLite in the home folder; ``ballast up`` starts its pages."""

    tracking_uri: str = ""
    artifact_root: str = ""
    port: int = Field(default=5000, ge=1, le=65535)


class ApiSettings(_Section):
    """The REST API. On more than the loopback it speaks TLS only: with ``certificate`` and ``key``, or with its own."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65535)
    certificate: Path | None = Field(default=None, description="PEM, with the chain")
    key: Path | None = Field(default=None, description="PEM, readable for the service's user alone")
    host_names: tuple[str, ...] = Field(
        default=("localhost", "127.0.0.1"), description="names in the certificate that Ballast makes"
    )
    abstain_below_radius: float = Field(
        default=0.0, ge=0, allow_inf_nan=False,
        description="diagnoses of a smaller robustness radius are given as abstained, with the reason; 0: none is",
    )

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: give both, or neither")
        return self

    @property
    def uses_tls(self) -> bool:
        """Whether the API speaks TLS, and nothing else."""
        return self.certificate is not None or not is_loopback(self.host)

    @property
    def url(self) -> str:
        """Address of the API, as this host reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"{'https' if self.uses_tls else 'http'}://{bracketed(host)}:{self.port}"


class RetentionSettings(_Section):
    """How long what grows is kept. The audit trail and evidence against sites are kept for ever."""

    rounds_days: int | None = Field(default=None, ge=1, description="rounds of finished runs; not given: for ever")
    keep_versions: int = Field(default=10, ge=1, description="newest versions of a model whose rounds always stay")
    events_days: int = Field(default=30, ge=1, le=30, description="events that webhooks and pages follow")
    prefect_days: int | None = Field(default=90, ge=1, description="flow runs in Prefect's history")


class Settings(_Section):
    """All settings of the OEM's side."""

    home: Path
    database_url: str = ""
    lease_seconds: float = Field(default=10.0, gt=0)
    nats: NatsSettings = NatsSettings()
    prefect: PrefectSettings = PrefectSettings()
    mlflow: MlflowSettings = MlflowSettings()
    api: ApiSettings = ApiSettings()
    retention: RetentionSettings = RetentionSettings()
    logging: LoggingSettings = LoggingSettings()
    tracing: TracingSettings = TracingSettings()
    oidc: OidcSettings | None = None

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the round store."""
        return self.database_url or f"sqlite:///{(self.home / 'ballast.db').resolve()}"

    @property
    def bus_folder(self) -> Path:
        """Files of the embedded NATS server."""
        return self.home / "nats"

    @property
    def secrets_folder(self) -> Path:
        """What opens the embedded Prefect and MLflow servers."""
        return self.home / "secrets"

    @property
    def flows_lock(self) -> Path:
        """File on which the flows process holds a lock while it runs."""
        return self.home / "flows.lock"

    @property
    def tls_folder(self) -> Path:
        """Certificate that the API makes for itself where it is given none."""
        return self.home / "tls"

    @property
    def nats_servers(self) -> tuple[str, ...]:
        """Addresses of the plant link, as this host reaches it."""
        return self.nats.servers or (f"tls://{bracketed(reached_at(self.nats.host))}:{self.nats.port}",)

    @property
    def nats_seed(self) -> Path:
        """The coordinator's nkey seed."""
        return self.nats.seed_file or self.bus_folder / "coordinator.nk"

    @property
    def nats_authority(self) -> Path | None:
        """Certificate of the authority that signed the NATS server's; None: that of the operating system."""
        if self.nats.ca_file or self.nats.servers:
            return self.nats.ca_file
        return self.bus_folder / "ca.pem"

    @property
    def prefect_api_url(self) -> str:
        """Prefect's API."""
        return self.prefect.api_url or f"{self.prefect.own_url}/api"

    @property
    def tracking_uri(self) -> str:
        """MLflow's tracking store."""
        return self.mlflow.tracking_uri or f"sqlite:///{(self.home / 'mlflow.db').resolve()}"

    @property
    def artifact_root(self) -> str:
        """MLflow's artifacts."""
        return self.mlflow.artifact_root or (self.home / "mlflow-artifacts").resolve().as_uri()

    @classmethod
    def load(cls, home: Path | None = None, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings of a home folder (default: ``$BALLAST_HOME``, else ``.ballast`` in the current folder).

        ``InvalidInputError`` with one line of what in the file or the environment does not fit.
        """
        environment = os.environ if environment is None else environment
        home = (home or Path(environment.get(HOME_VARIABLE) or ".ballast")).resolve()
        if "?" in str(home):  # it ends the path in an address of a database, which would lie in another folder
            raise InvalidInputError(f"{home} cannot be a home folder: no ? may be in its path")
        file = home / FILE_NAME
        try:
            values: dict[str, Any] = toml_values(file) if os.path.lexists(file) else {}
        except UnicodeDecodeError:
            raise InvalidInputError(f"{file} is not UTF-8 text") from None
        except tomllib.TOMLDecodeError as error:
            raise InvalidInputError(f"{file} is not TOML: {error}") from None
        said = add_environment(values, environment)
        try:
            return cls.model_validate({"home": home, **values})
        except ValidationError as error:
            raise InvalidInputError(explain_settings(error, cls, file, said)) from None
