"""Reports and the console's pages on paper, in a real browser: what scrolls on a screen is whole there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.reporting.html import page, table

STYLE = Path(__file__).parents[2] / "services/looks/console.css"
ACROSS = 718  # pixels of a sheet of A4 between its margins


HEAD = (
    "site", "weight", "worst weight", "radius", "confidence", "cost of a flip", "samples", "worst-case risk", "F-1",
    "answered", "absent", "late", "refused", "rejected", "last answer", "bytes to site", "bytes from site",
)
ROW = (
    "plant-of-northern-region-long-name-00", "0.01667", "0.01667", "0.001111", "none", "1", "90", "1.242", "0.8222",
    "7", "0", "0", "0", "0", "7", "7252", "5047",
)


def widths(browser: Any, text: str, scrolls: str) -> list[tuple[int, int]]:
    """Of what scrolls, the width inside and outside: on a screen, and on paper."""
    shown = browser.new_page(viewport={"width": ACROSS, "height": 900})
    shown.set_content(text)
    found = []
    for media in ("screen", "print"):
        shown.emulate_media(media=media)
        found.append(tuple(shown.locator(scrolls).evaluate("element => [element.scrollWidth, element.clientWidth]")))
    shown.close()
    return found


def test_a_wide_table_of_a_report_is_whole_on_paper(browser: Any) -> None:
    screen, paper = widths(browser, page("Model", table("Sites", HEAD, [ROW, ROW])), "table")
    assert screen[0] > screen[1], "on a screen it scrolls"
    assert paper[0] <= paper[1] + 1 <= ACROSS + 1


def test_a_wide_table_of_the_console_is_whole_on_paper(browser: Any) -> None:
    columns = 9  # as many as the widest table of a page has
    head = "".join(f'<th scope="col" class="n">{each}</th>' for each in HEAD[:columns])
    cells = "".join(f'<td class="n">{each}</td>' for each in ROW[1:columns])
    row = f'<tr><th scope="row">{ROW[0]}</th>{cells}</tr>'
    style = f"<!doctype html><style>{STYLE.read_text()}</style>"
    whole = f'{style}<main><section class="card"><div class="scroll"><table><thead><tr>{head}</tr></thead>'
    screen, paper = widths(browser, f"{whole}<tbody>{row}</tbody></table></div></section></main>", ".scroll")
    assert screen[0] > screen[1], "on a screen it scrolls"
    assert paper[0] <= paper[1] <= ACROSS
