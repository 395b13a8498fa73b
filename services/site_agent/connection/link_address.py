"""Where a plant connects, as whom, and by which certificate it knows the server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from services.contracts.errors import BallastError
from services.contracts.keys.signing import public_key
from services.site_agent.settings import SiteSettings


class LinkError(BallastError):
    """The plant link cannot be used as it is set up; trying again would not help."""

    code = "link_refused"


class KeyRefusedError(LinkError):
    """The server does not know the key, or knows it as another site's."""


@dataclass(frozen=True)
class Address:
    """Where to connect and as whom."""

    site_id: str
    servers: tuple[str, ...]
    seed_file: Path
    public_key: str
    authority: Path | None
    needs_tls: bool
    proxy: str | None = None
    proxy_auth: Path | None = None

    @classmethod
    def of(cls, settings: SiteSettings, seed: Path) -> Address:
        """Where the settings say that their site connects, with the key of a seed file."""
        return cls(
            site_id=settings.site_id, servers=settings.servers, seed_file=seed, public_key=public_key(seed),
            authority=settings.ca, needs_tls=settings.needs_tls, proxy=settings.proxy, proxy_auth=settings.proxy_auth,
        )

    @property
    def task_subject(self) -> str:
        """The one subject that the site hears."""
        return f"site.{self.site_id}.task"

    @property
    def hello_subject(self) -> str:
        """The one subject that the site may speak on unasked."""
        return f"hello.{self.site_id}"

    def tls_context(self) -> ssl.SSLContext | None:
        """What the server's certificate is checked by, None where nothing is; :class:`LinkError` for no such file.

        The system's authorities vouch for an encrypted server where the OEM gave none.
        """
        if self.authority is None:
            return ssl.create_default_context() if self.needs_tls else None
        try:
            return ssl.create_default_context(cafile=str(self.authority))
        except FileNotFoundError:
            raise LinkError(f"no certificate file at {self.authority}") from None
        except (OSError, ssl.SSLError):
            raise LinkError(f"{self.authority} is not a PEM certificate") from None
