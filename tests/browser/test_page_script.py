"""What the console's own script does on any page: times in the reader's zone, the look's button, files for a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.rendering import environment
from services.contracts.access.identity import Role
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from tests.browser.served import NOBODY, rendered, serve

TIMES = """{% extends "base.html" %}{% block main %}<h1>Times</h1>
<time datetime="2026-03-01T23:30:00+00:00">2026-03-01 23:30 UTC</time>
<time datetime="2025-12-31T22:15:00+00:00">2025-12-31 22:15 UTC</time>
<time datetime="soon">soon</time>{% endblock %}"""


@pytest.fixture
def open_page(browser: Any) -> Any:
    """A window of a reader in Tokyo, on the second of March 2026."""
    pages = []

    def opened(text: str, look: str = "light") -> Any:
        page = browser.new_page(timezone_id="Asia/Tokyo", locale="en-GB", color_scheme=look)
        pages.append(page)
        page.clock.install(time="2026-03-02T12:00:00Z")
        serve(page, text)
        return page

    yield opened
    for page in pages:
        page.close()


OpenPage = Callable[..., Any]


def test_times_are_the_readers_with_the_year_where_it_is_another(open_page: OpenPage) -> None:
    page = open_page(environment().from_string(TIMES).render(NOBODY))
    ours, before, none = page.locator("time").all()
    assert re.fullmatch("2 Mar,? 0?8:30", ours.inner_text())
    assert re.fullmatch("1 Jan,? 0?7:15", before.inner_text()), "by the reader's calendar it is this year"
    assert none.inner_text() == "soon" and none.get_attribute("title") is None
    title = ours.get_attribute("title")
    assert "Monday" in title and "2026" in title and title.endswith(" (2026-03-01T23:30:00+00:00)")
    page.evaluate("""document.querySelector("main").insertAdjacentHTML("beforeend",
      '<p><time datetime="2024-02-29T03:00:00+00:00">2024-02-29 03:00 UTC</time></p>')""")
    page.wait_for_function("document.querySelector('p time').hasAttribute('data-told')")
    assert re.fullmatch("29 Feb 2024,? 12:00", page.locator("p time").inner_text()), "what comes later is told so too"


def signed_in() -> str:
    caller = SimpleNamespace(token=SimpleNamespace(name="Ada"), role=Role.VIEWER)
    return environment().from_string(TIMES).render(NOBODY | {"caller": caller})


def test_the_looks_button_names_the_other_look_also_when_the_systems_changes(open_page: OpenPage) -> None:
    page = open_page(signed_in(), "dark")
    button = page.locator("#theme")
    assert button.is_visible() and button.inner_text() == "Light look"
    page.emulate_media(color_scheme="light")
    button.filter(has_text="Dark look").wait_for()
    page.evaluate("document.addEventListener('ballast:theme', () => { window.told = (window.told || 0) + 1 })")
    button.click()
    assert button.inner_text() == "Light look" and page.evaluate("window.told") == 1
    page.reload()
    chosen = "document.documentElement.dataset.theme"
    assert button.inner_text() == "Light look" and page.evaluate(chosen) == "dark"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("matchMedia('(prefers-color-scheme: dark)').matches")
    button.click()
    assert page.evaluate(chosen) == "light", "it is the other one of what is seen"
    page.evaluate("void (Storage.prototype.setItem = () => { throw new DOMException('full') })")
    button.click()
    assert page.evaluate(chosen) == "dark" and button.inner_text() == "Light look", "for this page alone, then"


@pytest.fixture
def form(open_page: OpenPage) -> Any:
    """The form of many samples."""
    pump = AssetType(
        name="pump", features=(Feature(name="flow", unit="l/s", low=0.0, high=9.0),),
        fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="worn", severity=1)),
    )
    return open_page(rendered(
        "diagnose.html", name="pump", asset_type=pump, alias="champion", fields={}, results=(), problem="",
    ))


DROP = """(content) => {
  const told = new DataTransfer(), area = document.getElementById("csv");
  if (content !== null) told.items.add(new File([content], "rows.csv", { type: "text/csv" }));
  const over = new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer: told });
  const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: told });
  area.dispatchEvent(over);
  area.dispatchEvent(drop);
  return [over.defaultPrevented, drop.defaultPrevented];
}"""


def test_a_file_that_is_dropped_or_chosen_is_the_text(form: Any, tmp_path: Path) -> None:
    area = form.locator("#csv")
    assert form.evaluate(DROP, "flow\n1.5\n") == [True, True]
    form.wait_for_function("document.getElementById('csv').value !== ''")
    assert area.input_value() == "flow\n1.5\n"
    assert form.evaluate(DROP, None)[1] is False, "a text that is dropped is the browser's"
    (tmp_path / "more.csv").write_text("flow\n2.5\n")
    form.locator("#csv-file").set_input_files(tmp_path / "more.csv")
    form.wait_for_function("document.getElementById('csv').value.includes('2.5')")
    assert form.locator("#csv-file").is_visible()


def test_a_file_that_is_too_large_for_a_form_is_not_taken(form: Any) -> None:
    form.locator("#csv").fill("flow")
    form.evaluate(DROP, "1" * 4_000_000)
    form.wait_for_function("!document.getElementById('csv').validity.valid", timeout=10_000)
    assert form.locator("#csv").input_value() == "flow"
    form.evaluate(DROP, "flow\n3.5\n")
    form.wait_for_function("document.getElementById('csv').value !== 'flow'")
    assert form.locator("#csv").input_value() == "flow\n3.5\n" and form.evaluate(
        "document.getElementById('csv').validity.valid"
    )
