"""A report on paper, in a real browser: what scrolls on a screen is whole there."""

from __future__ import annotations

from typing import Any

from services.reporting.html import page, table

ACROSS = 718  # pixels of a sheet of A4 between its margins


def test_a_wide_table_is_whole_on_paper(browser: Any) -> None:
    head = (
        "site", "weight", "worst weight", "radius", "confidence", "cost of a flip", "samples", "worst-case risk", "F-1",
        "answered", "absent", "late", "refused", "rejected", "last answer", "bytes to site", "bytes from site",
    )
    row = (
        "plant-of-northern-region-long-name-00", "0.01667", "0.01667", "0.001111", "none", "1", "90", "1.242", "0.8222",
        "7", "0", "0", "0", "0", "7", "7252", "5047",
    )
    shown = browser.new_page(viewport={"width": ACROSS, "height": 900})
    shown.set_content(page("Model", table("Sites", head, [row, row])))
    measured = "() => { const t = document.querySelector('table'); return [t.scrollWidth, t.clientWidth]; }"
    inner, outer = shown.evaluate(measured)
    assert inner > outer, "on a screen it scrolls"
    shown.emulate_media(media="print")
    inner, outer = shown.evaluate(measured)
    assert inner <= outer + 1 <= ACROSS + 1
    shown.close()
