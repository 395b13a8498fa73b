"""What plants are told of this host's addresses, and that its own processes reach the link."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from api.backend.addresses import (
    api_address,
    certificate_digest,
    link_addresses,
    websocket_addresses,
    without_secrets,
)
from api.backend.flows_process import flows_at_work
from api.system import checks
from services.bus import server
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles, TlsFiles
from services.contracts.errors import InvalidInputError, UnavailableError
from services.process.private_files import private_folder
from services.process.process_lock import held
from services.process.settings import Settings


@pytest.mark.parametrize(("address", "shown"), [
    ("https://ada:word@mlflow.example/pages?password=word&x=1", "https://mlflow.example/pages"),
    ("https://a@b:word@[::1]:5000/", "https://[::1]:5000/"), ("http://127.0.0.1:4200", "http://127.0.0.1:4200"),
])
def test_a_page_is_shown_without_user_password_and_query(address: str, shown: str) -> None:
    assert without_secrets(address) == shown


def settings(home: Path, **sections: Any) -> Settings:
    return Settings.model_validate({"home": home} | sections)


@pytest.mark.parametrize(("given", "named"), [
    ({}, "127.0.0.1"), ({"host": "0.0.0.0"}, "127.0.0.1"), ({"host": "192.168.0.7"}, "192.168.0.7"),
    ({"host": "0.0.0.0", "host_names": ["localhost", "oem.example"]}, "oem.example"),
    ({"host": "192.168.0.7", "host_names": ["oem.example"]}, "oem.example"),
    ({"host": "127.0.0.1", "host_names": ["oem.example"]}, "127.0.0.1"), ({"host": "::1"}, "[::1]"),
])
def test_plants_are_told_a_name_that_they_can_use(tmp_path: Path, given: dict[str, Any], named: str) -> None:
    found = settings(tmp_path, api=given, nats=given)
    scheme = "https" if given.get("host", "127.0.0.1") not in ("127.0.0.1", "::1") else "http"
    assert api_address(found) == f"{scheme}://{named}:8000"
    assert link_addresses(found) == (f"tls://{named}:4222",)


def test_a_server_of_its_own_is_named_as_the_settings_do(tmp_path: Path) -> None:
    assert link_addresses(settings(tmp_path, nats={"servers": ["tls://a:1", "tls://b:2"]})) == ("tls://a:1", "tls://b:2")


def test_of_a_cluster_plants_are_told_addresses_of_their_own(tmp_path: Path) -> None:
    told = {"BALLAST_NATS_SERVERS": "tls://nats-1:4222", "BALLAST_NATS_PLANT_SERVERS": "tls://oem:4222,wss://oem:443",
            "BALLAST_API_HOST": "0.0.0.0", "BALLAST_API_HOST_NAMES": "localhost,oem.example"}
    found = Settings.load(tmp_path, told)
    assert found.nats_servers == ("tls://nats-1:4222",)
    assert (link_addresses(found), websocket_addresses(found)) == (("tls://oem:4222",), ("wss://oem:443",))
    assert api_address(found) == "https://oem.example:8000"
    alone = settings(tmp_path, nats={"plant_servers": ["wss://oem:443"]})
    assert link_addresses(alone) == websocket_addresses(alone) == ("wss://oem:443",)


def test_plants_behind_proxies_are_told_the_port_of_web_sockets(tmp_path: Path) -> None:
    names = {"host": "0.0.0.0", "host_names": ["oem.example"]}
    assert websocket_addresses(settings(tmp_path, nats=names)) == ()
    opened = settings(tmp_path, nats=names | {"websocket_port": 443})
    assert websocket_addresses(opened) == ("wss://oem.example:443",)
    assert link_addresses(opened) == ("tls://oem.example:4222",)
    elsewhere = settings(tmp_path, nats={"servers": ["tls://a:1", "wss://a:2"], "websocket_port": 443})
    assert (link_addresses(elsewhere), websocket_addresses(elsewhere)) == (("tls://a:1",), ("wss://a:2",))


@pytest.mark.parametrize(("prefect", "seen"), [({}, False), ({"api_url": "http://prefect:4200/api"}, None)])
def test_of_flows_in_another_container_it_is_not_said_that_they_do_not_run(
    tmp_path: Path, prefect: dict[str, str], seen: bool | None
) -> None:
    found = settings(tmp_path, prefect=prefect)
    assert flows_at_work(found) is seen
    assert checks.flows(seen).state == ("ok" if seen is None else "warn")
    with held(found.flows_lock):
        assert flows_at_work(found) is True


def test_the_digest_is_that_of_the_certificate_which_is_shown(tmp_path: Path) -> None:
    assert certificate_digest(settings(tmp_path)) is None
    open_to_all = settings(tmp_path, api={"host": "0.0.0.0"})
    with pytest.raises(UnavailableError, match="ballast up"):
        certificate_digest(open_to_all)
    files = TlsFiles(open_to_all.tls_folder)
    ensure_certificates(files, ["127.0.0.1"])
    first = ssl.PEM_cert_to_DER_cert(files.certificate.read_text())
    assert certificate_digest(open_to_all) == hashlib.sha256(first).hexdigest()
    with files.certificate.open("a") as chain:  # the server's own stands first
        chain.write(files.authority.read_text())
    assert certificate_digest(open_to_all) == hashlib.sha256(first).hexdigest()
    named = {"host": "0.0.0.0", "certificate": str(files.authority), "key": str(files.key)}
    authority = ssl.PEM_cert_to_DER_cert(files.authority.read_text())
    assert certificate_digest(settings(tmp_path, api=named)) == hashlib.sha256(authority).hexdigest(), "that is shown"
    whole = files.certificate.read_text()
    for encoding in ("utf-8", "latin-1"):  # of whoever made the file
        files.certificate.write_text(f"friendlyName: Prüfstand\n{whole}", encoding=encoding)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)  # it is taken
        assert certificate_digest(open_to_all) == hashlib.sha256(first).hexdigest(), "whatever stands before it"
    files.certificate.write_text("nothing")
    with pytest.raises(InvalidInputError, match="no certificate"):
        certificate_digest(open_to_all)
    files.certificate.unlink()
    files.certificate.mkdir()
    with pytest.raises(UnavailableError, match="cannot be read: Is a directory"):
        certificate_digest(open_to_all)


def test_of_a_chain_the_digest_is_that_of_its_first_certificate(tmp_path: Path) -> None:
    """Also where no padding ends the first one: base64 would be read on into the next."""
    for number in range(100):
        shown = settings(tmp_path / str(number), api={"host": "0.0.0.0"})
        files = TlsFiles(private_folder(shown.tls_folder))
        ensure_certificates(files, ["127.0.0.1"])
        first = files.certificate.read_text()
        if "=" not in first:
            break
    files.certificate.write_text(first + files.authority.read_text())
    assert certificate_digest(shown) == hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "192.168.0.7"])
def test_the_hosts_own_processes_reach_the_link_by_its_certificate(tmp_path: Path, host: str) -> None:
    found = settings(tmp_path, nats={"host": host, "host_names": ["oem.example"]})
    files = BusFiles(found.bus_folder)
    server.prepare(files, host=host, port=4222, host_names=found.nats.host_names, site_keys={})
    names = x509.load_pem_x509_certificate(files.certificate.read_bytes()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName).value
    known = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    reached = found.nats_servers[0].removeprefix("tls://").rpartition(":")[0]
    assert {reached, "oem.example"} <= known and "0.0.0.0" not in known
