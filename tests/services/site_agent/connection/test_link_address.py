"""What a plant hears and says, and by which certificate it knows the server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from services.bus.certificates import ensure_certificates
from services.bus.configuration import TlsFiles
from services.site_agent.connection.link_address import Address, LinkError


def address(*servers: str, authority: Path | None = None, **changes: Any) -> Address:
    fields: dict[str, Any] = {
        "site_id": "plant-1", "seed_file": Path("site.nk"), "public_key": "U", "needs_tls": True, "servers": servers,
    }
    return Address(**fields | changes, authority=authority)


def test_a_plant_hears_its_own_tasks_and_speaks_in_its_own_name_alone() -> None:
    """The server holds it to that too; with a star it would ask for the tasks of all."""
    found = address("tls://oem:4222")
    assert (found.task_subject, found.hello_subject) == ("site.plant-1.task", "hello.plant-1")


def checks(context: ssl.SSLContext | None) -> bool:
    return context is not None and context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname


def test_a_server_is_known_by_the_oems_authority_or_that_of_the_system(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    ours = address("tls://oem:4222", authority=files.authority).tls_context()
    assert checks(ours) and ours is not None and len(ours.get_ca_certs()) == 1, "that authority and no other"
    for server in ("wss://oem:443", "tls://oem:4222"):
        of_the_system = address(server, needs_tls=True).tls_context()
        assert checks(of_the_system) and of_the_system is not None and len(of_the_system.get_ca_certs()) != 1
    assert address("nats://oem:4222", needs_tls=False).tls_context() is None


def test_a_certificate_that_is_none_is_said_before_anything_is_connected(tmp_path: Path) -> None:
    missing, wrong = tmp_path / "ca.pem", tmp_path / "word.pem"
    wrong.write_text("no certificate")
    for file, said in ((missing, "no certificate file at"), (wrong, "is not a PEM certificate"),
                       (tmp_path, "is not a PEM certificate")):
        with pytest.raises(LinkError, match=said) as refused:
            address("tls://oem:4222", authority=file).tls_context()
        assert refused.value.code == "link_refused"
