"""A plant's enrolment by a code: what the code reads like, what the plant sends, and what it gets.

A code reads ``blse_<site>_<id>_<secret>_<certificate>``. The site and the id are public, the secret is 256 random bits.
The last part is the SHA-256 of the certificate that the OEM's server shows: the plant sends nothing to a server that
shows another, so nobody on the way is trusted. It is ``system`` where a certificate that the operating system's
authorities vouch for stands before the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import Field

from services.contracts.access.identity import TokenId
from services.contracts.base import Contract, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType

PREFIX = "blse"
PATH = "/enrol"
SYSTEM = "system"
_FORM = re.compile(
    rf"{PREFIX}_([a-z0-9](?:[a-z0-9-]{{0,38}}[a-z0-9])?)_([0-9a-f]{{12}})_([0-9a-f]{{64}})_([0-9a-f]{{64}}|{SYSTEM})",
    re.ASCII,
)
_PURPOSE = b"ballast.enrolment/1\n"


@dataclass(frozen=True)
class EnrolmentCode:
    """A code's parts; ``certificate`` None: the operating system's authorities vouch for the server."""

    site_id: str
    code_id: str
    secret: str = field(repr=False)
    certificate: str | None

    @property
    def text(self) -> str:
        """Code as it is handed to the plant."""
        return f"{PREFIX}_{self.site_id}_{self.code_id}_{self.secret}_{self.certificate or SYSTEM}"


def read_code(text: str) -> EnrolmentCode:
    """Parts of a code; ``InvalidInputError`` in one line, without the text, where it is none."""
    found = _FORM.fullmatch("".join(text.split()))
    if found is None:
        raise InvalidInputError(
            f"this is no enrolment code: it reads {PREFIX}_<site>_<id>_<secret>_<certificate>, on one line, as the OEM "
            "gave it"
        )
    site_id, code_id, secret, certificate = found.groups()
    return EnrolmentCode(site_id, code_id, secret, None if certificate == SYSTEM else certificate)


class EnrolmentRequest(Contract):
    """What a plant sends: the code's parts, and its public key with a signature by the private one, which stays."""

    site_id: Slug
    code_id: TokenId
    secret: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False, description="the code's third part")
    public_key: str = Field(max_length=200, description="NATS user public key, U...")
    signature: str = Field(pattern=r"^[0-9a-f]{128}$", description="by that key, of what `proof` says; hexadecimal")
    web_socket: bool = Field(default=False, description="the plant reaches nothing but WebSockets (wss://)")


class EnrolmentPackage(Contract):
    """What an enrolled plant needs: its kind of machine, where to connect, whom to believe.

    ``authority``: certificate of the NATS server's authority (PEM), None: the operating system's. ``oem_key``: public
    key by which versions are signed. ``servers`` are WebSockets where the plant asked for them and the OEM has them.
    """

    site_id: Slug
    asset_type: AssetType
    servers: tuple[str, ...] = Field(min_length=1)
    authority: str | None = None
    oem_key: str | None = None


def proof(code_id: str, site_id: str, public_key: str) -> bytes:
    """What the plant signs: that it holds the private half of the key that it enrols with this code."""
    return _PURPOSE + f"{code_id}\n{site_id}\n{public_key}".encode()
