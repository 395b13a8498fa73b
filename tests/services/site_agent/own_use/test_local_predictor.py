"""Diagnoses inside the plant: of a table they are the OEM's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor
from services.site_agent.cli import main
from services.site_agent.own_use.sample_stream import diagnose_lines
from services.site_agent.settings import CsvSource


def test_the_plant_says_what_the_oem_would_say(
    version: ModelVersion, model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [row[:3] for row in make_table(30)]
    rows[4][0] = 250.0  # outside its range: clipped by both
    path = write_csv(rows)
    assert main(["diagnose", "--model", str(model_file), "--input", str(path), "--oem-key", oem[1]]) == 0
    lines = capsys.readouterr().out.splitlines()
    samples = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    expected = Predictor(version).diagnose(samples)
    assert {diagnosis.fault_class for diagnosis in expected} == {"healthy", "leak"}
    assert lines[1:] == [
        f"{row},{found.fault_class},{found.severity},{found.robustness_radius:.6g}"
        for row, found in enumerate(expected, start=1)
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_may_be_named_in_the_settings(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], kind: str,
) -> None:
    path = write_csv([["Q", "ripple"], [80, 4]])
    (tmp_path / "site.toml").write_text(
        f'site_id = "p"\nservers = ["nats://a:1"]\noem_key = "{oem[1]}"\n'
        f'[data]\nkind = "{kind}"\npath = "x"\n[data.columns]\nflow = "Q"\n'
    )
    arguments = ["diagnose", "--model", str(model_file), "--input", str(path)]
    for checked in ([], ["--oem-key", oem[1]], ["--unsigned"]):
        assert main([*arguments, "--config", str(tmp_path / "site.toml"), *checked]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("1,leak,5,")
    assert main([*arguments, "--oem-key", oem[1]]) == 1
    assert "no column 'flow'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{", "is not JSON"), ("[]", "a JSON object is needed"), ("{}", "schema"), (None, "no model")],
)
def test_a_file_that_is_no_model_is_said(
    tmp_path: Path, write_csv: Callable[..., Path], make_table: Any, text: str | None, expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if text is not None:
        (tmp_path / "m.json").write_text(text)
    path = write_csv(make_table(3))
    assert main(["diagnose", "--model", str(tmp_path / "m.json"), "--input", str(path), "--unsigned"]) == 1
    said = capsys.readouterr().err
    assert expected in said and said.count("\n") == 1


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_radius_of_a_network_is_in_the_models_own_norm(version: ModelVersion, make_table: Any, norm: str) -> None:
    spec = TrainingSpec.model_validate(
        {"loss": {"name": "cross_entropy"}, "network": {"hidden": 3}, "transport_norm": norm}
    )
    drawn = np.random.default_rng(2).normal(size=(1, 20))
    fields = {name: getattr(version, name) for name in ModelVersion.model_fields}
    network = ModelVersion(**fields | {"spec": spec, "weights": drawn})
    rows = [dict(zip(make_table(1)[0][:3], map(float, row[:3]), strict=True)) for row in make_table(6)[1:]]
    columns = CsvSource(kind="csv", path=Path("-"))
    told = list(diagnose_lines(network, [json.dumps(row).encode() for row in rows], columns))[:-1]
    assert [each["robustness_radius"] for each in told] == pytest.approx(
        [each.robustness_radius for each in Predictor(network).diagnose(rows)]
    )


def test_a_radius_without_end_is_null_in_every_form_of_json_as_in_the_oems_api(
    version: ModelVersion, write_csv: Callable[..., Path], make_table: Any, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No move changes the class that a model of zero weights says; JSON has no number for that."""
    flat, rows = version.model_copy(update={"weights": np.array([[0.0, 0.0, 0.0, 1.0]])}), make_table(1)
    model, lines = tmp_path / "flat.json", tmp_path / "x.ndjson"
    model.write_text(json.dumps(flat.to_document()))
    lines.write_text(json.dumps(dict(zip(rows[0][:3], map(float, rows[1][:3]), strict=True))))
    asked = ["diagnose", "--unsigned", "--model", str(model), "--input"]

    def refused(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    assert main([*asked, str(lines)]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[0], parse_constant=refused)
    assert main([*asked, str(write_csv([row[:3] for row in rows])), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=refused)["rows"]
    sample = json.loads(lines.read_text())
    assert answer["robustness_radius"] is row["robustness_radius"] is None
    assert Predictor(flat).diagnose([sample])[0].robustness_radius is None
    assert main([*asked, str(write_csv([row[:3] for row in rows]))]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(",")[3] == "inf", "a table has no null"
