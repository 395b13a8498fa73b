"""Texts and numbers of a version stand in a header as they are, and never as code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.contracts.machines.asset_type import Feature
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.exporting.c99_text import LONGEST, C99Writer, identifier, literal
from tests.services.exporting.compiled import MAIN, build, needs_compiler

HOSTILE = (
    "*/ int evil; /*", '"; system("x"); "', "\\", "??/", "new\nline", "\u00b5m\u00b2 \U0001f600", "%s%n", "1\x002",
)


@needs_compiler
def test_hostile_texts_stay_texts(tmp_path: Path, make_model: Callable[..., ModelVersion]) -> None:
    features = tuple(
        Feature.model_construct(
            name=text, unit=text, low=0.0, high=1.0, required=True, out_of_range="clip", description=text
        )
        for text in HOSTILE
    )
    plain = make_model(features=tuple(Feature(name=f"f{k}", unit="1", low=0.0, high=1.0) for k in range(len(HOSTILE))))
    kind = plain.asset_type.model_copy(update={"features": features})
    version = plain.model_copy(update={"asset_type": kind, "version": '*/ "'})
    body = 'fputs(ballast_pump_7_feature_units[0], stdout); (void) values;'
    row = "{" + ", ".join(["0.0"] * len(HOSTILE)) + "}"
    header = c99_header(version)
    assert build(tmp_path, header, MAIN % (row, "double", body)) == HOSTILE[0]
    outside = [line for line in header.splitlines() if not line.strip().startswith('"') and "#define" not in line]
    assert not any(word in line for line in outside for word in ("evil", "system"))


def test_texts_and_names_are_safe() -> None:
    assert literal('a"b\\c?\n\u00b5') == '"a\\042b\\134c\\077\\012\\302\\265"'
    assert identifier("pump-7 */ x") == "pump_7____x" and identifier("\u00b5") == "_"
    assert literal((LONGEST + 1) * "\u20ac") == '"' + LONGEST * "\\342\\202\\254" + '"'
    assert LONGEST * 4 <= 4095, "bytes of a literal that any C99 compiler takes, of the longest characters"


def test_numbers_are_read_back_bit_for_bit() -> None:
    drawn = np.random.default_rng(5).normal(size=200) * 10.0 ** np.arange(-100, 100)
    double, single = C99Writer("m", single=False), C99Writer("m", single=True)
    for value in (*drawn.tolist(), 0.1, 5e-324, 1.7976931348623157e308, 3.0, -0.0):
        assert float(double.number(value)).hex() == value.hex()
        held = np.float32(value) if abs(value) < 3.4e38 else None
        if held is not None:
            text = single.number(value)
            assert text.endswith("f") and np.float32(text[:-1]).tobytes() == held.tobytes()
    assert [single.number(value) for value in (1e39, -1e39)] == ["INFINITY", "-INFINITY"]
    assert [double.number(value) for value in (np.inf, -np.inf, np.nan)] == ["INFINITY", "-INFINITY", "NAN"]


TOLD = """
#include <stdio.h>
#include "model.h"
int main(void) {
    int k;
    puts(BALLAST_PUMP_A_MODEL); puts(BALLAST_PUMP_A_VERSION); puts(BALLAST_PUMP_A_RUN); puts(BALLAST_PUMP_A_ASSET_TYPE);
    puts(BALLAST_PUMP_A_CONTRACT_SHA256);
    for (k = 0; k < BALLAST_PUMP_A_FEATURES; ++k)
        printf("%%s in %%s\\n", ballast_pump_a_feature_names[k], ballast_pump_a_feature_units[k]);
    %s
    return BALLAST_PUMP_A_self_test();
}
"""
CLASSES_TOLD = """for (k = 0; k < BALLAST_PUMP_A_OUTPUTS; ++k)
        printf("%s %d\\n", ballast_pump_a_class_names[k], ballast_pump_a_severities[k]);"""
TARGET_TOLD = 'printf("%s in %s\\n", BALLAST_PUMP_A_TARGET, BALLAST_PUMP_A_TARGET_UNIT);'


@needs_compiler
@pytest.mark.parametrize("n_classes", [0, 4])
def test_it_tells_model_version_contract_units_classes_and_severities(
    tmp_path: Path, make_model: Callable[..., ModelVersion], n_classes: int
) -> None:
    version = make_model(None, n_classes).model_copy(update={"name": "pump-a"})
    kind = version.asset_type
    faults = tuple(
        fault.model_copy(update={"severity": severity})
        for fault, severity in zip(kind.fault_classes, (0, 7, 2, 7), strict=False)
    )
    version = version.model_copy(update={"asset_type": kind.model_copy(update={"fault_classes": faults})})
    header = c99_header(version)
    said = build(tmp_path, header, TOLD % (CLASSES_TOLD if n_classes else TARGET_TOLD)).splitlines()
    assert said == [
        "pump-a", "3", "ab" * 16, "pump-7", kind.fingerprint,
        "flow in l/min", "pressure in bar", "oil in degC",
        *(["healthy 0", "leak 7", "worn 2", "blocked 7"] if n_classes else ["wear in mm"]),
    ]
    assert "malloc" not in header and header.count("#include") == 1
    assert header.endswith("_H */\n"), "C99 asks for an end of the last line"
