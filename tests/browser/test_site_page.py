"""The plant's own page in a browser: for everybody (axe-core, A and AA), all its own, without a complaint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.machines.asset_type import AssetType
from services.site_agent.console.server import PAGES, SiteConsole
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import SiteSettings
from tests.browser.conftest import Seen
from tests.browser.test_pages import faults
from tests.services.site_agent.conftest import TWO_CLASSES, Site, table

BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteConsole]:
    """The page of a plant that answered, whose readings moved since, and whose ledger somebody changed."""
    home = tmp_path_factory.mktemp("plant")
    (home / "asset_type.toml").write_text(TWO_CLASSES)
    (home / "policy.toml").write_text(default_policy_text(("pump",), seen_alone=True))
    (home / "site.toml").write_text(
        'site_id = "plant-1"\nservers = ["tls://oem.example:4222"]\n[data]\nkind = "csv"\npath = "data.csv"\n'
    )
    settings = SiteSettings.from_toml(home / "site.toml")
    new_seed_file(settings.nkey_seed)
    header, *rows = table(100)
    write(home, [header, *rows])
    key = settings.nkey_seed
    policy, contract = SitePolicy.from_toml(settings.policy), AssetType.from_toml(settings.asset_type)
    site = Site(home, contract, policy, settings.data, signer(key), public_key(key))
    with closing(site.ledger):
        site.ask(round=0)
        for number, weights in enumerate(np.eye(4), start=1):
            at = weights[np.newaxis]
            site.ask("round", round=number, arrays={"point": at, "centre": at, "penalty": np.ones(1)})
        site.ask(method="unknown")
    site.door.close()
    write(home, [header, *([min(row[0] + 25.0, 100.0), *row[1:]] for row in rows)])
    settings.ledger.write_text(settings.ledger.read_text().replace('"round":3', '"round":33'))
    with SiteConsole(settings, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def write(home: Path, rows: list[list[Any]]) -> None:
    (home / "data.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def test_every_page_is_accessible_whole_and_its_own(browser: Any, console: SiteConsole) -> None:
    url, address = f"http://127.0.0.1:{console.server_port}", console.first_address
    kept: list[Any] = []
    for look, width in (("light", 1280), ("dark", 820)):
        with closing(browser.new_context(
            color_scheme=look, viewport={"width": width, "height": 900}, reduced_motion="reduce"
        )) as context:
            context.add_cookies(kept)
            seen = Seen(context.new_page(), url)
            seen.page.on("request", lambda request, seen=seen: seen.requests.append(request.url))
            seen.page.on("console", lambda said, seen=seen: seen.complaints.append(said.text))
            seen.page.on("pageerror", lambda error, seen=seen: seen.complaints.append(str(error)))
            if not kept:
                seen.open(address.removeprefix(url))
                assert seen.page.url == f"{url}/", "the secret is gone from the address"
            kept = context.cookies()
            assert [each["httpOnly"] and each["sameSite"] for each in kept] == ["Strict"]
            for path in PAGES:
                seen.open(path)
                assert faults(seen.page) == [], path
                beyond = seen.page.evaluate(BEYOND)
                assert beyond <= 0, f"{path} is {beyond} px wider than the window"
                assert seen.page.locator("nav a[aria-current]").get_attribute("href") == path
                assert seen.page.locator(".side").evaluate("side => getComputedStyle(side).display") == "flex", "styled"
            seen.open("/")
            first = seen.page.locator(".attention li").first
            assert first.get_by_text("The ledger is not what was written").is_visible()
            assert seen.page.get_by_text("Readings have moved").is_visible()
            seen.check()
    with closing(browser.new_context()) as stranger:
        page = stranger.new_page()
        assert page.goto(url).status == 403 and "plant-1" not in page.content()
        assert faults(page) == []
