"""Programs with a header of ours, by gcc at its strictest: what they print, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header

COMPILER = shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no gcc")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")
MAIN = """
#include <stdio.h>
#include "model.h"
int main(void) {
    static const double rows[][BALLAST_PUMP_7_FEATURES] = { %s };
    unsigned r; int k;
    if (BALLAST_PUMP_7_self_test() != 0) return 3;
    for (r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        %s values[BALLAST_PUMP_7_FEATURES];
        for (k = 0; k < BALLAST_PUMP_7_FEATURES; ++k) values[k] = rows[r][k];
        %s
    }
    return 0;
}
"""
CLASSES = """%s scores[BALLAST_PUMP_7_OUTPUTS];
        ballast_pump_7_scores(values, scores);
        printf("%%d", ballast_pump_7_class(values));
        for (k = 0; k < BALLAST_PUMP_7_OUTPUTS; ++k) printf(" %%.17g", (double) scores[k]);
        printf("\\n");"""
TARGET = 'printf("0 %.17g\\n", (double) ballast_pump_7_estimate(values));'


def build(folder: Path, header: str, program: str) -> str:
    """What a program with the header prints."""
    (folder / "model.h").write_text(header, encoding="ascii")
    (folder / "main.c").write_text(program, encoding="ascii")
    command = [str(COMPILER), *STRICT, "main.c", "-o", "main", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    ran = subprocess.run([str(folder / "main")], capture_output=True, text=True)
    assert ran.returncode == 0, f"self test: {ran.returncode}"
    return ran.stdout


def answers(folder: Path, version: ModelVersion, rows: Any, *, single: bool = False) -> tuple[list[int], Any]:
    texts = ", ".join("{" + ", ".join("NAN" if np.isnan(x) else repr(x) for x in row) + "}" for row in rows)
    kind = "float" if single else "double"
    body = TARGET if version.task == "regression" else CLASSES % kind
    lines = build(folder, c99_header(version, single=single), MAIN % (texts, kind, body)).splitlines()
    table = [line.split() for line in lines]
    return [int(line[0]) for line in table], np.array([[float(x) for x in line[1:]] for line in table])


def refusal(folder: Path, program: str, *more: str) -> str:
    """What the compiler says of a program that it refuses."""
    (folder / "main.c").write_text(program + "int main(void) { return 0; }\n", encoding="ascii")
    command = [str(COMPILER), *STRICT, *more, "main.c", "-o", "main", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return made.stderr if made.returncode else ""
