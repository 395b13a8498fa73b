"""Pictures of every page of a running console: ``python -m tests.browser.screenshots --url URL --token-file FILE``."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
from pathlib import Path
from typing import Any

WIDTHS = (1440, 820)
LOOKS = ("light", "dark")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def addresses(page: Any, url: str) -> dict[str, str]:
    """Name and address of each page that the console's first ones lead to."""
    found = {"fleet": "/console", "runs": "/console/runs"}
    page.goto(f"{url}/console/runs")
    run = page.locator('a[href^="/console/runs/"]').first.get_attribute("href")
    runs = [link.get_attribute("href") for link in page.locator('tbody th a[href^="/console/runs/"]').all()]
    page.goto(f"{url}/console/models")
    model = page.locator('tbody th a[href^="/console/models/"]').first.get_attribute("href")
    page.goto(f"{url}{model}")
    version = page.url.removeprefix(url)
    left, right = (link.rsplit("/", 1)[1] for link in (runs[0], runs[-1]))
    page.goto(f"{url}/console/plans")
    plan = page.locator('tbody th a[href^="/console/plans/"]').first.get_attribute("href")
    return found | {
        "run": str(run), "compare": f"/console/runs/compare?left={left}&right={right}", "models": "/console/models",
        "model": version, "fairness": f"{version}/fairness", "diagnose": f"{model}/diagnose",
        "plans": "/console/plans", "plan": str(plan), "privacy": "/console/privacy",
        "audit": "/console/audit?verify=true", "admin": "/console/admin", "system": "/console/system",
        "components": "/console/components", "docs": "/docs",
    }


def sign_in(page: Any, url: str, token: str) -> None:
    """Open a session."""
    page.goto(f"{url}/console/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/console")


def take(browser: Any, url: str, token: str, out: Path, only: str = "", *, full: bool = True) -> list[Path]:
    """Pictures of every page in both looks and widths, as PNG files."""
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for width, look in itertools.product(WIDTHS, LOOKS):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=look)
        page = context.new_page()
        page.goto(f"{url}/console/sign-in")
        made.append(out / f"sign-in-{width}-{look}.png")
        page.screenshot(path=made[-1])
        sign_in(page, url, token)
        for name, address in addresses(page, url).items():
            if only and name != only:
                continue
            page.goto(url + address)
            if name == "diagnose":
                page.get_by_role("button", name="Diagnose", exact=True).click()
                page.locator(".answer").wait_for()
            page.wait_for_timeout(300)
            made.append(out / f"{name}-{width}-{look}.png")
            page.screenshot(path=made[-1], full_page=full)
        context.close()
    return made


def main(words: list[str] | None = None) -> int:
    """Take the pictures; the number of files is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the running API, such as the demo's")
    parser.add_argument("--token-file", type=Path, default=Path(".ballast/demo/token"), help="an administrator's token")
    parser.add_argument("--out", type=Path, default=Path(".ballast/screenshots"), help="folder of the pictures")
    parser.add_argument("--only", default="", help="one page, by its name")
    chosen = parser.parse_args(words)
    if not chosen.token_file.is_file():
        print(f"no token at {chosen.token_file}: start `make demo` first, and leave it running", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    path = os.environ.get("BALLAST_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        print("no Chromium found: install one, or name it in BALLAST_CHROMIUM", file=sys.stderr)
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        made = take(browser, chosen.url, chosen.token_file.read_text().strip(), chosen.out, chosen.only)
        browser.close()
    print(f"{len(made)} pictures in {chosen.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
