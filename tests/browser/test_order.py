"""Tables of plants are put in order by a press on a column's head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.console.rendering import environment
from tests.browser.served import NOBODY, serve

ROWS = (
    ("plant-10", "✓ connected", "2\u202f362", "8.4\u202fkB", "0.5\u202f%", "2026-02-01T10:00:00+00:00", "+0.1"),
    ("plant-2", "silent", "90", "12\u202fMB", "12\u202f%", "2026-03-01T09:00:00+00:00", "-0.2"),
    ("plant-1", "✓ connected", "–", "990\u202fB", "not told", "2025-12-31T23:00:00+00:00", "1e-05"),
    ("plant-100", "silent", "630", "1\u202fkB", "3\u202f%", "", "∞"),
)
HEADS = ("Plant", "State", "Rows", "From it", "Weight", "Last seen", "Change")
TABLE = """{% extends "base.html" %}{% block main %}<h1>Plants</h1>
{% for mark in ("data-order", "") %}<table {{ mark }}><thead><tr>{% for head in heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in rows %}<tr><th scope="row">{{ row[0] }}</th>{% for cell in row[1:] %}<td>{% if "T" in cell %}<time
 datetime="{{ cell }}">{{ cell }}</time>{% else %}{{ cell }}{% endif %}</td>{% endfor %}</tr>{% endfor %}</tbody></table>
{% endfor %}{% endblock %}"""  # noqa: E501 - as a page has it
ORDERED = {
    "Plant": ["plant-1", "plant-2", "plant-10", "plant-100"],
    "Rows": ["plant-2", "plant-100", "plant-10", "plant-1"],
    "From it": ["plant-1", "plant-100", "plant-10", "plant-2"],
    "Weight": ["plant-10", "plant-100", "plant-2", "plant-1"],
    "Last seen": ["plant-1", "plant-10", "plant-2", "plant-100"],
    "Change": ["plant-2", "plant-1", "plant-10", "plant-100"],
}
UNKNOWN = {"Rows": 1, "Weight": 1, "Last seen": 1}
"""Plants of which a column says nothing: they stay at the end."""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of two tables of plants, of which the first may be put in order."""
    opened = browser.new_page()
    opened.set_default_timeout(10_000)
    serve(opened, environment().from_string(TABLE).render(NOBODY | {"rows": ROWS, "heads": HEADS}))
    yield opened
    opened.close()


def names(page: Any, table: int = 0) -> list[str]:
    found: list[str] = page.locator("table").nth(table).locator("tbody th").all_inner_texts()
    return found


@pytest.mark.parametrize("head", ORDERED)
def test_a_column_orders_its_table_by_what_it_means_and_back(page: Any, head: str) -> None:
    button = page.get_by_role("button", name=head, exact=True)
    button.click()
    assert names(page) == ORDERED[head]
    assert names(page, 1) == [row[0] for row in ROWS], "the other table stays as it is"
    button.press("Enter")
    known = len(ROWS) - UNKNOWN.get(head, 0)
    assert names(page) == ORDERED[head][:known][::-1] + ORDERED[head][known:]
    button.press("Space")
    assert names(page) == ORDERED[head]


def test_rows_that_are_alike_stay_as_they_were_and_one_head_alone_tells_the_order(page: Any) -> None:
    for head, told, found in (
        ("Plant", "ascending", ["plant-1", "plant-2", "plant-10", "plant-100"]),
        ("State", "ascending", ["plant-1", "plant-10", "plant-2", "plant-100"]),
        ("State", "descending", ["plant-2", "plant-100", "plant-1", "plant-10"]),
    ):
        page.get_by_role("button", name=head, exact=True).click()
        sorts = page.locator("th[aria-sort]")
        assert sorts.count() == 1 and sorts.inner_text().startswith(head)
        assert (sorts.get_attribute("aria-sort"), names(page)) == (told, found)


def test_heads_are_words_without_a_second_row_or_a_mark(page: Any) -> None:
    assert page.locator("table").first.get_by_role("button").count() == len(HEADS)
    assert page.locator("table").last.get_by_role("button").count() == 0
    one = environment().from_string(TABLE).render(NOBODY | {"rows": ROWS[:1], "heads": HEADS})
    serve(page, one)
    assert page.locator("main").get_by_role("button").count() == 0
