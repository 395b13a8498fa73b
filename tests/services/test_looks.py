"""A plant's page and the operator's console are made of the same: one style sheet, components with the same markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from api.console import charts, formats, rendering
from services import looks
from services.looks import parts

WORDS = "<b>a & b</b>"


def flat(markup: object) -> str:
    """Markup without what blanks between tags and attributes say, and with one way to write a quote."""
    text = re.sub(r"\s+", " ", str(markup).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    return re.sub(r" ?(<|>|/>) ?", r"\1", text).strip()


@pytest.mark.parametrize(("name", "words", "also"), [
    ("tile", (WORDS, 7, WORDS), {}), ("tile", ("a", 7), {}), ("empty", (WORDS,), {}), ("api", ("/x.json?a=<",), {}),
    ("badge", (WORDS, "good"), {}), ("notice", (WORDS,), {}), ("notice", (WORDS, "bad", WORDS), {}),
    ("notice", ("a", "warn"), {}), ("head", (WORDS, WORDS), {}), ("head", ("a",), {}),
])
def test_a_component_has_the_markup_of_the_consoles(name: str, words: tuple[Any, ...], also: dict[str, Any]) -> None:
    macros: Any = rendering.environment().get_template("parts.html").module
    ours = getattr(parts, name)(*words, **also)
    assert flat(ours) == flat(getattr(macros, name)(*words, **also))
    assert "<b>" not in ours


def test_bars_times_and_sizes_are_the_same() -> None:
    for share in (0.0, 0.25, 1.0, 7.0, float("nan"), None):
        assert str(parts.bar(share)) == str(charts.bar(share))
    for moment in (None, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)):
        assert str(parts.when(moment)) == str(formats.when(moment))
    for count in (None, 0, 999, 1000, 123456, 5e6, 7e9):
        assert parts.size(count) == formats.size(count)


def test_the_frame_is_the_consoles() -> None:
    """The same landmarks, classes and order of them; what needs a script or a session is the console's alone."""
    base = (rendering.FOLDER / "templates" / "base.html").read_text(encoding="utf-8")
    page = parts.page("t", "o", parts.Html("<p>b</p>"), (("/", "A"),), "/", "who")
    for piece in (
        'class="skip" href="#main"', '<header class="side">', '<nav aria-label="Console">', '<div class="who">',
        '<main id="main" tabindex="-1">', parts._SIGN, '<meta name="color-scheme" content="light dark">',
    ):
        assert piece in base and piece in page, piece
    assert "<script" not in page and 'aria-current="page"' in page


def test_every_class_of_a_component_is_known_to_the_style() -> None:
    style = looks.content("console.css").decode()
    shown = parts.joined([
        parts.tiles(parts.tile("a", 1, "b")), parts.badge("x", "warn"), parts.notice("x", "bad"), parts.empty("x"),
        parts.table("t", ["a", "b", "c"], [("1", 2, "x")], numbers=(1,)), parts.facts([("a", "b")]), parts.bar(0.5),
        parts.card("c", "d"), parts.paging("/x", 2, 3), parts.head("a", "b"), parts.api("/x"),
    ])
    used = {name for names in re.findall(r'class="([^"]+)"', shown) for name in names.split()}
    unstyled = {name for name in used if not re.search(rf"\.{name}\b", style)} - {"plain"}
    assert len(used) > 12 and unstyled == set()


def test_one_style_sheet_is_served_by_both() -> None:
    found = {path.name for path in rendering.STATIC.glob("*.css")}
    assert "console.css" not in found and rendering.FILES["console.css"] == looks.FOLDER / "console.css"
    with pytest.raises(KeyError):
        looks.content("../parts.py")
