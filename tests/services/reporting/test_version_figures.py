"""Pictures beside a version's report: they show what the report says, and nothing where it says nothing."""

from __future__ import annotations

import json
import math
import re
from xml.etree import ElementTree

import numpy as np

from services.contracts.history.run import Run
from services.contracts.versions.model_version import ModelVersion
from services.reporting.confusion_chart import SLANT, confusion_chart
from services.reporting.model_report import model_report
from services.reporting.version_figures import version_figures

COUNTS = ((50, 2, 0), (3, 40, 7), (0, 0, 0))
CLASSES = ("healthy", "leak & <drip>", "a name of a class that is very long")


def test_a_confusion_matrix_shows_every_count_where_it_belongs() -> None:
    root = ElementTree.fromstring(confusion_chart(CLASSES, COUNTS))
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert len(titles) == 9
    assert titles[1].startswith("healthy diagnosed as leak & <drip>: 2 rows, 3.8%")
    assert titles[3].startswith("leak & <drip> diagnosed as healthy: 3 rows, 6.0%")
    assert titles[8].endswith("0 rows, 0.0% of the true class")
    rows = [int(count) for title in titles for count in re.findall(r": (\d+) rows", title)]
    assert rows == [count for line in COUNTS for count in line]
    rectangles = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    places = [(float(each.get("y", "")), float(each.get("x", ""))) for each in rectangles]
    assert places == sorted(places) and len(set(places)) == 9, "rows from top to bottom, columns from left to right"
    high, wide = float(root.attrib["height"]), float(root.attrib["width"])
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert all(0 < float(each.attrib["y"]) < high and 0 < float(each.attrib["x"]) < wide for each in texts)
    lowest = max(float(each.get("y", "")) + float(each.get("height", "")) for each in rectangles)
    (below,) = (each for each in texts if (each.text or "").startswith("rows: true class"))
    assert lowest < float(below.attrib["y"]), "what the rows are stands below them"
    assert json.dumps(CLASSES[2]).strip('"') not in [each.text for each in root.iter()]


def test_long_names_of_classes_do_not_overlap_and_stay_apart() -> None:
    stages = [f"outer_race_defect_at_drive_end_stage_{n}" for n in (1, 2)]
    root = ElementTree.fromstring(confusion_chart(["healthy", *stages], COUNTS))
    above = [each for each in root if "transform" in each.attrib]
    assert [each.text for each in above] == ["healthy", "outer_rac…nd_stage_1", "outer_rac…nd_stage_2"]
    for each in above:
        assert len(each.text or "") * 6.8 * math.cos(math.radians(SLANT)) + float(each.attrib["x"]) <= float(
            root.attrib["width"]
        )
        assert float(each.attrib["y"]) - len(each.text or "") * 6.8 * math.sin(math.radians(SLANT)) > 24
    short = ElementTree.fromstring(confusion_chart(["healthy", "leak", "worn"], COUNTS))
    assert not any("transform" in each.attrib for each in short)


def test_counts_are_told_to_the_nearest_row_and_no_rows_have_no_picture(version: ModelVersion, run: Run) -> None:
    """Sums of masked shares come a little beside the whole numbers that they are of."""
    classes = len(version.asset_type.fault_classes)
    report = model_report(version, run, ())
    counts = np.full((classes, classes), 3.0) - 1e-9
    figures = version_figures(version, report, counts)
    told = json.loads(figures["confusion.json"])
    assert told["true_by_diagnosed"] == [[3] * classes] * classes
    for none in (None, np.zeros((classes, classes))):
        assert not any(name.startswith("confusion") for name in version_figures(version, report, none))
