"""A C99 header compiles without a warning and says what the predictor says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import Feature
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.exporting.c99_text import identifier, literal
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor

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


@needs_compiler
@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_answers_are_the_predictors(
    tmp_path: Path, make_model: Callable[..., ModelVersion], drawn: Any, lift: Any, n_classes: int,
    features: tuple[Feature, ...],
) -> None:
    version = make_model(lift, n_classes, features)
    samples, rows = drawn(40)
    numbers, said = answers(tmp_path, version, rows)
    if n_classes == 0:
        wanted = [[each.value] for each in Estimator(version).estimate(samples)]
    else:
        found = Predictor(version).diagnose(samples)
        assert [version.asset_type.class_names[k] for k in numbers] == [each.fault_class for each in found]
        wanted = [list(each.scores.values()) for each in found]
    # The whitening of Nystrom features has numbers of a thousand, whose rounding is that much larger.
    kind = getattr(version.spec.lift, "kind", "")
    np.testing.assert_allclose(said, wanted, rtol=0, atol=1e-9 if kind == "nystrom" else 1e-12)


@needs_compiler
def test_in_floats_it_is_near_and_compiles_as_strictly(
    tmp_path: Path, make_model: Callable[..., ModelVersion], drawn: Any, lift: Any, features: tuple[Feature, ...]
) -> None:
    version = make_model(lift, 4, features)
    samples, rows = drawn(20)
    _, said = answers(tmp_path, version, rows, single=True)
    found = [list(each.scores.values()) for each in Predictor(version).diagnose(samples)]
    np.testing.assert_allclose(said, found, atol=5e-3)


@needs_compiler
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_network_answers_as_the_predictor_does(
    tmp_path: Path, make_network: Callable[..., ModelVersion], drawn: Any, features: tuple[Feature, ...],
    n_classes: int,
) -> None:
    version = make_network(n_classes, features)
    samples, rows = drawn(40)
    found = Predictor(version).diagnose(samples)
    for single, near in ((False, 1e-12), (True, 1e-4)):
        numbers, said = answers(tmp_path, version, rows, single=single)
        np.testing.assert_allclose(said, [list(each.scores.values()) for each in found], rtol=0, atol=near)
        assert single or [version.asset_type.class_names[k] for k in numbers] == [each.fault_class for each in found]


@needs_compiler
@pytest.mark.parametrize("kind", ["planes", "network"])
def test_a_missing_required_feature_is_no_class(
    tmp_path: Path, make_model: Callable[..., ModelVersion], make_network: Callable[..., ModelVersion], kind: str
) -> None:
    version = make_model() if kind == "planes" else make_network()
    numbers, said = answers(tmp_path, version, [[np.nan, 150.0, 20.0], [10.0, 150.0, np.nan]])
    assert numbers[0] == -1 and numbers[1] in (0, 1) and np.isnan(said[0]).all()


@needs_compiler
def test_the_self_test_fails_where_a_weight_was_changed(
    tmp_path: Path, make_model: Callable[..., ModelVersion]
) -> None:
    version = make_model(None, 4)
    header = c99_header(version)
    first = repr(float(version.weights[0, 0]))
    assert header.count(first) == 1
    with pytest.raises(AssertionError, match="self test"):
        build(tmp_path, header.replace(first, repr(float(version.weights[0, 0]) + 0.01)), MAIN % (
            "{0.0, 0.0, 0.0}", "double", CLASSES % "double"
        ))


@needs_compiler
@pytest.mark.parametrize("n_classes", [0, 4])
def test_the_self_test_looks_at_the_first_answer_too_and_takes_nan_for_none(
    tmp_path: Path, make_model: Callable[..., ModelVersion], n_classes: int
) -> None:
    """It says 1 where the first vector is answered otherwise, for 0 means that all are well."""
    version = make_model(None, n_classes)
    header, weight = c99_header(version), repr(float(version.weights[0, 0]))
    begin, mark, rest = header.partition("ballast_pump_7_test_answers[")
    declared, brace, numbers = rest.partition("= {\n    ")
    answer, comma, others = numbers.partition(",")
    body = "(void) values;"
    changed = begin + mark + declared + brace + repr(float(answer) + 1.0) + comma + others
    for text in (changed, header.replace(weight, "NAN")):
        program = MAIN.replace("if (BALLAST_PUMP_7_self_test() != 0) return 3;",
                               'printf("%%d", BALLAST_PUMP_7_self_test());')
        assert build(tmp_path, text, program % ("{0.0, 0.0, 0.0}", "double", body)) == "1"


@needs_compiler
def test_of_classes_with_one_score_the_first_is_told(tmp_path: Path, make_model: Callable[..., ModelVersion]) -> None:
    """As the predictor does."""
    version = make_model(None, 4)
    version = version.model_copy(update={"weights": np.zeros_like(version.weights)})
    numbers, _ = answers(tmp_path, version, [[10.0, 150.0, 20.0]])
    sample = {"flow": 10.0, "pressure": 150.0, "oil": 20.0}
    (found,) = Predictor(version).diagnose([sample])
    assert numbers == [0] and found.fault_class == version.asset_type.class_names[0]


def refusal(folder: Path, program: str, *more: str) -> str:
    """What the compiler says of a program that it refuses."""
    (folder / "main.c").write_text(program + "int main(void) { return 0; }\n", encoding="ascii")
    command = [str(COMPILER), *STRICT, *more, "main.c", "-o", "main", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return made.stderr if made.returncode else ""


@needs_compiler
def test_models_stand_in_one_program_and_versions_of_one_do_not(
    tmp_path: Path, make_model: Callable[..., ModelVersion], make_network: Callable[..., ModelVersion]
) -> None:
    version, target, network = make_model(None, 4), make_model(None, 0), make_network()
    texts = c99_header(version) + c99_header(target) + c99_header(network)
    parts = [word.split("_") for word in re.findall(r"ballast_pump_7_([a-z_]+)", texts)]
    words = sorted({"-".join(part[:n]) for part in parts for n in range(1, len(part) + 1)})
    for number, name in enumerate(["pump-7", *(f"pump-7-{word}" for word in words)]):
        for task, made in (("c", version), ("t", target), ("n", network)):
            header = c99_header(made.model_copy(update={"name": name}))
            (tmp_path / f"{task}{number}.h").write_text(header, encoding="ascii")
    for task in "ctn":
        every = "".join(f'#include "{task}{number}.h"\n' for number in range(len(words) + 1))
        assert refusal(tmp_path, every + every) == ""
    for name, header in (("later", c99_header(version.model_copy(update={"version": "4"}))),
                         ("float", c99_header(version, single=True))):
        (tmp_path / f"{name}.h").write_text(header, encoding="ascii")
        said = refusal(tmp_path, f'#include "c0.h"\n#include "{name}.h"\n')
        assert "another version of pump_7" in said


@needs_compiler
@pytest.mark.parametrize("option", ["-ffast-math", "-ffinite-math-only", "-Ofast"])
def test_it_is_not_compiled_where_nan_does_not_happen(
    tmp_path: Path, make_model: Callable[..., ModelVersion], option: str
) -> None:
    (tmp_path / "model.h").write_text(c99_header(make_model()), encoding="ascii")
    assert "NAN says that a value is missing" in refusal(tmp_path, '#include "model.h"\n', option)


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


def test_it_states_model_version_contract_and_units(make_model: Callable[..., ModelVersion]) -> None:
    version = make_model()
    header = c99_header(version)
    for said in ('_MODEL "pump-7"', '_VERSION "3"', f'_CONTRACT_SHA256 "{version.asset_type.fingerprint}"', '"degC"'):
        assert said in header
    assert "malloc" not in header and header.count("#include") == 1
