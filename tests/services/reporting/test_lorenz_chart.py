"""Pictures of a fairness report: each curve once, under its name, and the same picture again."""

from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from services.reporting.fairness_report import fairness_report
from services.reporting.lorenz_chart import STYLES, _draw, lorenz_chart
from tests.services.reporting.test_fairness_report import version


def test_the_pictures_are_pictures_and_the_same_again() -> None:
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0, "c": 2.0}))
    svg, png = lorenz_chart(report, "svg"), lorenz_chart(report, "png")
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "held-out loss" in svg.decode() and "worst-case risk" not in svg.decode()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert lorenz_chart(report, "svg") == svg
    assert b" style=" not in svg and b"<style" not in svg, "a page's policy lets no style in a drawing count"


def test_a_curve_goes_over_the_sites_and_the_champions_has_a_look_of_its_own() -> None:
    (indices,) = fairness_report(version("2", {"a": 1.0, "b": 3.0})).indices
    plotted: list[tuple[list[float], list[float], dict[str, object]]] = []
    axes = SimpleNamespace(plot=lambda across, up, **look: plotted.append((across, up, look)))
    for champion in (False, True):
        _draw(axes, axes, indices, "curve", champion=champion)
    (across, up, own), (same, transformed, _), (*_, other), _ = plotted
    assert across == same == [0.0, 0.5, 1.0] and up == pytest.approx([0.0, 0.25, 1.0])
    assert transformed == pytest.approx([0.0, 0.0, 0.5])
    assert own["linestyle"] != other["linestyle"] and own["marker"] != other["marker"]
    assert len(set(STYLES.values())) == len(STYLES)
    assert own["markevery"] == 1
    (many,) = fairness_report(version("2", {f"p{n}": 1.0 + n for n in range(200)})).indices
    _draw(axes, axes, many, "curve", champion=False)
    assert 201 / plotted[-1][2]["markevery"] <= 24, "marks of hundreds of plants hide their line"


def test_every_curve_of_both_versions_is_named_once() -> None:
    champion = version("1", {"a": 1.0, "b": 1.0})
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}, {"a": 0.2, "b": 0.2}), champion)
    drawn = lorenz_chart(report, "svg").decode()
    own, other = "held-out loss, Gini 0.250", "held-out loss of the champion, Gini 0.000"
    for told in (own, "worst-case risk, Gini 0.000", other):
        assert drawn.count(told) == 1
