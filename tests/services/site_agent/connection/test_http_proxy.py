"""How a proxy is written, what opens it, and what is said where it does not open."""

from __future__ import annotations

import base64
import http.client
import ssl
from pathlib import Path

import pytest

from services.contracts.errors import InvalidInputError
from services.site_agent.http_proxy import REFUSED, HttpProxy, host_and_port, read_credentials


@pytest.mark.parametrize(("url", "found"), [
    ("http://proxy:3128", ("proxy", 3128)), ("http://proxy/", ("proxy", 80)), ("http://[::1]:8080", ("::1", 8080)),
])
def test_a_proxy_has_a_host_and_a_port(url: str, found: tuple[str, int]) -> None:
    assert host_and_port(url) == found


@pytest.mark.parametrize("url", [
    "https://proxy:3128", "proxy:3128", "http://me@proxy", "http://:hush@proxy", "http://proxy/path", "http://proxy?a=b",
    "http://proxy:port", "http://:3128", "socks5://proxy",
])
def test_what_is_no_proxy_is_told_the_form_and_nothing_of_itself(url: str) -> None:
    with pytest.raises(InvalidInputError, match="proxy is written http://host:port") as refused:
        HttpProxy.of(url, None)
    assert "hush" not in str(refused.value)


def test_user_and_password_of_the_file_open_it_and_go_to_the_proxy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tunnels = []
    monkeypatch.setattr(http.client.HTTPSConnection, "set_tunnel", lambda _self, *told: tunnels.append(told))
    file = tmp_path / "auth"
    file.write_text("me:pa:ss\n", encoding="utf-8")
    proxy = HttpProxy.of("http://proxy:3128", file)
    assert proxy.headers == {"Proxy-Authorization": "Basic " + base64.b64encode(b"me:pa:ss").decode()}
    made = proxy.connection("oem.example", 443, 7.0, ssl.create_default_context())
    assert (made.host, made.port, made.timeout) == ("proxy", 3128, 7.0)
    assert tunnels == [("oem.example", 443, proxy.headers)] and read_credentials(file) == ("me", "pa:ss")
    assert HttpProxy.of("http://proxy:3128", None).headers == {}
    file.write_text("hush", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="must hold user:password on one line") as refused:
        HttpProxy.of("http://proxy:3128", file)
    assert "hush" not in str(refused.value)


def test_why_a_way_does_not_open_is_one_line() -> None:
    bare, known = HttpProxy("proxy", 80, {}), HttpProxy("proxy", 80, {"Proxy-Authorization": "Basic x"})
    wanted = OSError(f"{REFUSED}407 Proxy Authentication Required")
    asked = str(bare.failure(wanted, "oem"))
    assert "wants a password (407" in asked and "--proxy-auth" in asked
    assert "wants another user or password than those of --proxy-auth" in str(known.failure(wanted, "oem"))
    shut = str(bare.failure(OSError(f"{REFUSED}403 Forbidden\n{'x' * 500}"), "oem"))
    assert "does not let this plant through to oem (403 Forbidden" in shut and "\n" not in shut and len(shut) < 250
    gone = str(bare.failure(ConnectionRefusedError(111, "Connection refused"), "oem"))
    assert gone == "no way through the proxy proxy:80 to oem (Connection refused); nothing was sent"
