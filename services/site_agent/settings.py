"""Settings of one site agent, read from ``site.toml``; the site owns the file, and every path is relative to it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from services.contracts.base import Contract, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import check_public_key
from services.contracts.reading import read_toml
from services.process.log_lines import LoggingSettings
from services.process.tracing import TracingSettings
from services.site_agent.http_proxy import host_and_port

DEFAULT_SERVER = "tls://localhost:4222"
"""Where a site that is told no other looks for the plant link."""
Fraction = Annotated[float, Field(gt=0, le=0.9, allow_inf_nan=False)]


class SettingsError(InvalidInputError):
    """The settings or the policy file cannot be used as they stand."""

    code = "bad_settings"


class SimulatorSource(Contract):
    """A folder of raw signals in the simulator's format; features are computed from the flow signal."""

    kind: Literal["simulator"]
    path: Path


class TableSource(Contract):
    """What CSV and Parquet tables have in common: one row a measurement, one column a feature.

    ``columns`` maps a feature to the column that holds it (default: the column of the feature's name), ``units`` a
    feature to the unit of its column, ``labels`` the plant's own words to class names. Where the asset type has a
    target, a row may have a class, a value of the target, or both; an empty cell says that it has none.

    Which rows are held out: those that ``split_column`` says, or ``test_fraction`` of the machines of
    ``machine_column``, or the last ``test_fraction`` by ``time_column``, or that share of each class. Where rows of one
    machine, or of one hour, are near copies, ``machine_column`` or ``time_column`` keeps a training row's neighbours
    out of the test, and together in the folds of a tuning; beside ``split_column`` it does the latter alone.
    """

    path: Path
    columns: dict[str, str] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    label_column: str = "label"
    target_column: str | None = Field(default=None, description="None: the column of the target's name")
    labels: dict[str, str] = Field(default_factory=dict)
    split_column: str | None = Field(default=None, description="holds 'train' or 'test'; None: hold a fraction out")
    machine_column: str | None = Field(default=None, description="rows of one machine are all held out, or none")
    time_column: str | None = Field(default=None, description="numbers or ISO 8601: the last fraction is held out")
    test_fraction: Fraction = 0.25
    seed: int = Field(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _one_rule_of_holding_out(self) -> Self:
        if self.machine_column is not None and self.time_column is not None:
            raise ValueError("machine_column and time_column each say which rows belong together: give one of them")
        return self


class CsvSource(TableSource):
    """A CSV file with a header line, UTF-8."""

    kind: Literal["csv"]
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    decimal: Literal[".", ","] = "."

    @model_validator(mode="after")
    def _comma_has_one_meaning(self) -> Self:
        if self.delimiter == self.decimal:
            raise ValueError(f"delimiter and decimal are both {self.decimal!r}; they must differ")
        return self


class ParquetSource(TableSource):
    """A Parquet file; needs the extra ``parquet``."""

    kind: Literal["parquet"]


DataSource = Annotated[SimulatorSource | CsvSource | ParquetSource, Field(discriminator="kind")]


class SiteSettings(Contract):
    """Everything that a site agent is told at its start."""

    site_id: Slug
    servers: tuple[str, ...] = Field(min_length=1)
    proxy: str | None = Field(default=None, description="http://host:port of a proxy on the way to wss:// servers")
    proxy_auth: Path | None = Field(default=None, description="file with user:password for that proxy")
    nkey_seed: Path = Path("site.nk")
    ca: Path | None = Field(default=None, description="certificate of the OEM's authority; None: the system's")
    oem_key: str | None = Field(
        default=None, description="the OEM's public key, by which it signs tasks and versions; None: any task does"
    )
    heard_keys: Path = Field(default=Path("heard-keys.json"), description="keeps the changes of that key, as heard")
    asset_type: Path = Path("asset_type.toml")
    policy: Path = Path("policy.toml")
    ledger: Path = Path("ledger.jsonl")
    exposure: Path = Path("exposure.sqlite")
    log: Path = Path("site.log")
    logging: LoggingSettings = LoggingSettings()
    tracing: TracingSettings = Field(default_factory=TracingSettings.of_environment)
    data: DataSource

    @model_validator(mode="after")
    def _paths_can_be(self) -> Self:
        """TOML has an escape for NUL, which no path can hold, and ``open`` then names neither file nor setting."""
        named = [*((name, getattr(self, name)) for name in type(self).model_fields), ("data.path", self.data.path)]
        for name, value in named:
            if isinstance(value, Path) and "\0" in str(value):
                raise ValueError(f"{name} holds a NUL character, which no path can hold")
        return self

    @field_validator("oem_key")
    @classmethod
    def _key(cls, key: str | None) -> str | None:
        try:
            return key if key is None else check_public_key(key)
        except InvalidInputError as error:
            raise ValueError(str(error)) from None

    @field_validator("servers")
    @classmethod
    def _addresses(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        for server in servers:
            try:
                address = urlsplit(server)
                fits = address.scheme in ("nats", "tls", "ws", "wss") and address.hostname and (address.port or 1) > 0
            except ValueError:
                fits = False
            if not fits or address.username or address.password:
                raise ValueError(
                    "a server is written nats://host:port or tls://host:port, without user or password; "
                    "wss://host:port for a WebSocket"
                )
        if len({server.startswith("ws") for server in servers}) > 1:
            raise ValueError("the servers are all reached by WebSocket (wss://), or none is")
        return servers

    @model_validator(mode="after")
    def _proxy_fits(self) -> Self:
        if self.proxy_auth is not None and self.proxy is None:
            raise ValueError("proxy_auth opens the proxy: give proxy too")
        if self.proxy is None:
            return self
        host_and_port(self.proxy)
        if not all(server.startswith("wss://") for server in self.servers):
            raise ValueError("a proxy lets WebSockets over TLS through: the servers must be wss://host:port")
        return self

    @property
    def needs_tls(self) -> bool:
        """Whether a connection without TLS must be refused."""
        return self.ca is not None or any(server.startswith(("tls://", "wss://")) for server in self.servers)

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read the settings; raise :class:`SettingsError` with one line that says what does not fit."""
        with suppress(PermissionError, NotADirectoryError):
            if not path.exists():
                raise SettingsError(f"no settings file at {path}: name this plant's, as in --config plant-7/site.toml")
        return read_toml(cls, path, "settings", SettingsError).resolved(path.resolve().parent)

    def resolved(self, folder: Path) -> Self:
        """Copy whose relative paths are taken from ``folder``."""
        changed: dict[str, Any] = {
            name: folder / getattr(self, name)
            for name in ("nkey_seed", "heard_keys", "asset_type", "policy", "ledger", "exposure", "log")
        }
        for name in ("ca", "proxy_auth"):
            if getattr(self, name) is not None:
                changed[name] = folder / getattr(self, name)
        changed["data"] = self.data.model_copy(update={"path": folder / self.data.path})
        return self.model_copy(update=changed)
