"""How the parts of the OEM's side are started: by which commands, with which certificates, known by which home."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from api.cli.processes import stack
from services.contracts.errors import UnavailableError
from services.process.settings import HOME_VARIABLE, Settings
from services.round_store.store import RoundStore

OUTSIDE = {"host": "0.0.0.0", "host_names": ["oem.example"]}


class Started:
    """Keeps what would be started."""

    def __init__(self) -> None:
        self.children: list[Any] = []

    def start(self, child: Any) -> None:
        self.children.append(child)


def settings(home: Path, **sections: Any) -> Settings:
    return Settings.model_validate({"home": home} | sections)


def test_on_the_loopback_the_api_speaks_http_and_makes_no_certificate(tmp_path: Path) -> None:
    assert not any(word.startswith("--ssl") for word in stack.api_command(settings(tmp_path)))
    assert not (tmp_path / "tls").exists()


def test_elsewhere_it_shows_a_certificate_that_goes_with_its_key(tmp_path: Path) -> None:
    command = stack.api_command(settings(tmp_path, api=OUTSIDE))
    certificate, key = (command[command.index(f"--ssl-{name}file") + 1] for name in ("cert", "key"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)  # raises where they are not of one pair
    (shown,) = x509.load_pem_x509_certificates(Path(certificate).read_bytes())[:1]
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "oem.example" in names.get_values_for_type(x509.DNSName), "by which plants and browsers ask for it"
    assert Path(certificate).name == "server.pem" and Path(key).stat().st_mode & 0o077 == 0


def test_a_certificate_of_the_settings_is_shown_where_both_files_are_there(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ours.pem", tmp_path / "ours.key"
    named = settings(tmp_path, api=OUTSIDE | {"certificate": str(certificate), "key": str(key)})
    certificate.touch()
    key.mkdir()
    with pytest.raises(UnavailableError, match="ours.key, which the settings name"):
        stack.api_command(named)
    key.rmdir()
    key.touch()
    assert stack.api_certificate(named) == (certificate, key)


def test_the_link_is_started_with_the_plants_that_are_enrolled_and_known_by_its_home(
    tmp_path: Path, new_sqlite: Callable[[], str], new_key: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plants that were seen know the server's key; one that was removed does not count any more."""
    here = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": new_sqlite()})
    store = RoundStore.open(here.database)
    for name in ("seen", "never", "gone"):
        store.sites.enrol(name, new_key(), ())
    store.sites.connected(["seen", "gone"])
    store.sites.remove("gone")
    store.close()
    told: dict[str, Any] = {}
    monkeypatch.setattr(stack, "prepare", lambda files, **given: told.update(given))
    monkeypatch.setattr(stack, "command", lambda files: ["nats-server"])
    started: Any = Started()
    stack.start_bus(started, here)
    (child,) = started.children
    assert child.environment == {HOME_VARIABLE: str(tmp_path)}, "so that another home's server is not taken for it"
    assert told["known_to"] == 1 and set(told["site_keys"]) == {"seen", "never"}


@pytest.mark.parametrize(("start", "sections"), [
    (stack.start_bus, {"nats": {"servers": ["tls://elsewhere:4222"]}}),
    (stack.start_prefect, {"prefect": {"api_url": "http://elsewhere:4200/api"}}),
    (stack.start_mlflow, {"mlflow": {"tracking_uri": "http://elsewhere:5000"}}),
], ids=["nats", "prefect", "mlflow"])
def test_a_server_that_the_settings_name_is_not_started_here(start: Any, sections: Any, tmp_path: Path) -> None:
    started = Started()
    start(started, settings(tmp_path, **sections))
    assert started.children == [] and list(tmp_path.iterdir()) == []
