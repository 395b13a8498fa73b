"""Parts of the pages of reports: a text stays a text wherever it stands."""

from __future__ import annotations

from services.reporting.html import page, table

NAME = '<img src="http://elsewhere.example/x">'


def test_no_text_opens_a_tag() -> None:
    """Names of plants, plans, classes and sensors are anybody's words; the pages may load nothing from elsewhere."""
    told = page(NAME, table(NAME, (NAME, "count"), [(NAME, "1"), ("b", NAME)]) + table(NAME, (), [(NAME, NAME)]))
    assert "<img" not in told and told.count("&lt;img") == 8
