"""A scrape while the store is away: its token cannot be looked up, and the alert on the store has to be raised."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from httpx import ASGITransport, AsyncClient, Response
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from services.process.settings import Settings

TOKEN = {"Authorization": f"Bearer blst_{'0' * 12}_{'0' * 64}"}


def scraped(settings: Settings, headers: dict[str, str]) -> Response:
    app = create_app(settings)

    async def answer() -> Response:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://ballast", headers=headers) as client:
            return await client.get("/metrics")

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        return portal.call(answer)


@pytest.mark.parametrize("url", ["sqlite:///{}/ballast.db", "postgresql://postgres@/postgres?host={}"])
def test_a_scrape_says_that_the_store_is_away_and_nothing_else(tmp_path: Path, url: str) -> None:
    settings = Settings.model_validate({"home": tmp_path, "database_url": url.format(tmp_path)})
    answer = scraped(settings, TOKEN)
    families = {each.name: [one.value for one in each.samples] for each in text_string_to_metric_families(answer.text)}
    assert (answer.status_code, families) == (200, {"ballast_store_up": [0.0]})
    assert scraped(settings, {}).status_code == 401
