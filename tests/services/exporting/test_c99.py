"""A C99 header compiles without a warning and says what the predictor says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import Feature
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from tests.services.exporting.compiled import CLASSES, MAIN, answers, build, needs_compiler, refusal
from tests.services.exporting.conftest import LIFTS


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
@pytest.mark.parametrize("kind", [*LIFTS, "network"])
def test_a_missing_required_feature_is_no_class(
    tmp_path: Path, make_model: Callable[..., ModelVersion], make_network: Callable[..., ModelVersion], kind: str
) -> None:
    version = make_network() if kind == "network" else make_model(LIFTS[kind])
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

    def changed(by: float) -> str:
        return begin + mark + declared + brace + repr(float(answer) * (1.0 + by)) + comma + others

    texts = ((changed(1.0), "1"), (changed(3e-10), "1"), (changed(3e-11), "0"), (header.replace(weight, "NAN"), "1"))
    for text, said in texts:
        program = MAIN.replace("if (BALLAST_PUMP_7_self_test() != 0) return 3;",
                               'printf("%%d", BALLAST_PUMP_7_self_test());')
        assert build(tmp_path, text, program % ("{0.0, 0.0, 0.0}", "double", body)) == said


@needs_compiler
def test_of_classes_with_one_score_the_first_is_told(tmp_path: Path, make_model: Callable[..., ModelVersion]) -> None:
    """As the predictor does."""
    version = make_model(None, 4)
    version = version.model_copy(update={"weights": np.zeros_like(version.weights)})
    numbers, _ = answers(tmp_path, version, [[10.0, 150.0, 20.0]])
    sample = {"flow": 10.0, "pressure": 150.0, "oil": 20.0}
    (found,) = Predictor(version).diagnose([sample])
    assert numbers == [0] and found.fault_class == version.asset_type.class_names[0]


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
@pytest.mark.parametrize("option", ["-ffast-math", "-ffinite-math-only", "-Ofast", "-D_M_FP_FAST"])
def test_it_is_not_compiled_where_nan_does_not_happen(
    tmp_path: Path, make_model: Callable[..., ModelVersion], option: str
) -> None:
    (tmp_path / "model.h").write_text(c99_header(make_model()), encoding="ascii")
    assert "NAN says that a value is missing" in refusal(tmp_path, '#include "model.h"\n', option)
