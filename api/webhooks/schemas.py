"""What the endpoints of webhooks take and give."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from services.contracts.base import Contract
from services.contracts.history.events import EventKind, Webhook
from services.process.settings import is_loopback


class WebhookRequest(Contract):
    """An address to send events to: https, or http on this host's loopback."""

    url: str = Field(max_length=500)
    kinds: tuple[EventKind, ...] = Field(default=(), max_length=50, description="empty: all of them")

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
            (host or "").encode("idna")
        except ValueError:  # also a name with an empty label, or one of more than 63 characters
            host, parts = None, urlsplit("")
        plain = url.isascii() and url.isprintable() and " " not in url
        if host is None or parts.scheme not in ("https", "http") or not plain:
            raise ValueError("an address is written https://host/path, without blanks")
        if parts.username is not None or parts.fragment:
            raise ValueError("an address has no user, password or fragment: messages are signed instead")
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError("http is for this host's loopback alone; give an https:// address")
        return url


class NewWebhook(Contract):
    """A webhook as it is shown this once: with the secret by which its messages are signed."""

    secret: str = Field(repr=False, description="it cannot be shown again")
    webhook: Webhook


class Webhooks(Contract):
    """Webhooks by id, without their secrets."""

    webhooks: tuple[Webhook, ...]


class Delivery(Contract):
    """How a message was taken: ``status`` is that of HTTP, None where nobody answered."""

    delivered: bool
    status: int | None
    reason: str
