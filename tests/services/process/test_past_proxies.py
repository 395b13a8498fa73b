"""Proxies are for other hosts: whoever asks this one, by whichever library, asks it and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request

import httpx
import pytest
import requests

from services.process.past_proxies import reach_this_host_directly

PROXY = "http://proxy.works.example:3128"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without a word of proxies, and as it was after the test."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            monkeypatch.setenv(spelling, "")
            monkeypatch.delenv(spelling)
    return monkeypatch


def by_a_proxy(url: str) -> set[bool]:
    """Whether a proxy is asked for an address, by each of three libraries."""
    session = requests.Session()
    by_requests = session.merge_environment_settings(url, {}, None, None, None)["proxies"]
    with httpx.Client() as client:
        by_httpx = client._transport_for_url(httpx.URL(url)) is not client._transport
    host = httpx.URL(url).host
    by_urllib = "http" in urllib.request.getproxies() and not urllib.request.proxy_bypass(host)
    return {bool(by_requests), by_httpx, bool(by_urllib)}


@pytest.mark.parametrize("said", ["", "no_proxy=10.0.0.1", "NO_PROXY=10.0.0.1, localhost"])
@pytest.mark.parametrize("spelling", ["http_proxy", "HTTP_PROXY"])
def test_this_host_is_asked_itself_and_others_by_the_proxy(
    environment: pytest.MonkeyPatch, spelling: str, said: str
) -> None:
    environment.setenv(spelling, PROXY)
    if said:
        environment.setenv(*said.split("="))
    assert by_a_proxy("http://127.0.0.1:8000/readyz") == {True}
    reach_this_host_directly()
    for here in ("http://127.0.0.1:8000/readyz", "http://localhost:4200/api/health"):
        assert by_a_proxy(here) == {False}
    assert by_a_proxy("http://10.0.0.1/") == {not said}, "what was said holds"
    assert by_a_proxy("http://10.0.0.2/") == {True}
    once = dict(os.environ)
    reach_this_host_directly()
    assert dict(os.environ) == once


@pytest.mark.parametrize("said", [{}, {"NO_PROXY": "10.0.0.1"}, {"http_proxy": ""}])
def test_without_a_proxy_nothing_is_said(environment: pytest.MonkeyPatch, said: dict[str, str]) -> None:
    for name, value in said.items():
        environment.setenv(name, value)
    before = dict(os.environ)
    reach_this_host_directly()
    assert dict(os.environ) == before


@pytest.mark.parametrize("module", ["api.cli.main", "services.site_agent.cli"])
def test_both_commands_and_what_they_start_ask_this_host_itself(module: str) -> None:
    program = (
        f"import os, sys\nfrom {module} import main\nsys.argv[1:] = ['completion', 'bash']\nmain()\n"
        "print(os.environ['no_proxy'], file=sys.stderr)"
    )
    environment = {**os.environ, "http_proxy": PROXY, "no_proxy": "", "NO_PROXY": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == "localhost,127.0.0.1,::1\n"


def test_who_wants_no_proxy_at_all_gets_none(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", PROXY)
    environment.setenv("no_proxy", "*")
    reach_this_host_directly()
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "*"
