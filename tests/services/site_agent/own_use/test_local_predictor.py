"""Diagnoses inside the plant."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.conformal.grid import score_grid
from models.conformal.spread import STEPS
from models.methods.protocol import WORST_CASE
from services.contracts.errors import ConflictError
from services.contracts.evaluation.calibration import Calibration, CountedRows, Spread
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.keys.signed_documents import signature_of
from services.contracts.keys.signing import new_seed_file
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from services.site_agent.cli import main
from services.site_agent.own_use.local_predictor import CONFORMAL_HEADER, ESTIMATE_HEADER, HEADER, SETS_HEADER, diagnose
from services.site_agent.own_use.sample_stream import diagnose_lines, opened_lines
from services.site_agent.settings import CsvSource
from services.site_agent.vault.json_line import LONGEST_LINE


@pytest.fixture
def version(asset_type: AssetType) -> ModelVersion:
    return ModelVersion(
        name="pump", run_id="a" * 32, plan="pump", method="level-bundle", asset_type=asset_type,
        spec=TrainingSpec(transport_norm="l1"), weights=np.array([[4.0, 3.0, -0.5, -3.6]]), rounds=3,
        certified_gap=1e-3, worst_case_risk=0.4, objective=0.4, objective_name=WORST_CASE,
        lower_bound=0.39, fresh_weight=1.0,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def oem(tmp_path: Path) -> tuple[Path, str]:
    """Seed and public key of the OEM."""
    seed = tmp_path / "oem.nk"
    return seed, new_seed_file(seed)


@pytest.fixture
def model_file(tmp_path: Path, version: ModelVersion, oem: tuple[Path, str]) -> Path:
    seed, key = oem
    document = version.model_copy(update={"signed_by": key}).to_document()
    path = tmp_path / "champion.json"
    path.write_text(json.dumps({**document, "signature": signature_of(document, seed), "version": "7"}))
    return path


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


def test_columns_may_be_named_in_the_settings(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_csv([["Q", "ripple"], [80, 4]])
    (tmp_path / "site.toml").write_text(
        f'site_id = "p"\nservers = ["nats://a:1"]\noem_key = "{oem[1]}"\n'
        '[data]\nkind = "csv"\npath = "x.csv"\n[data.columns]\nflow = "Q"\n'
    )
    arguments = ["diagnose", "--model", str(model_file), "--input", str(path)]
    assert main([*arguments, "--config", str(tmp_path / "site.toml")]) == 0
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signature": ""}, "is not signed"),
        ({"signature": "AAAA"}, "changed after the OEM signed it"),
        ({"certified_gap": 1e-4}, "changed after the OEM signed it"),
        ({"weights": [[4.0, 3.0, -0.5, -3.5]]}, "changed after the OEM signed it"),
        ({"certificate_sha256": "0" * 64}, "changed after the OEM signed it"),
        ({"signed_by": "UBAD"}, "is signed by UBAD, not by the OEM's key"),
    ],
)
def test_a_model_that_the_oem_did_not_sign_as_it_stands_is_refused(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, change: dict[str, Any],
    words: str, capsys: pytest.CaptureFixture[str],
) -> None:
    model_file.write_text(json.dumps({**json.loads(model_file.read_text()), **change}))
    arguments = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3)))]
    assert main([*arguments, "--oem-key", oem[1]]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert main([*arguments, "--unsigned"]) == 0, "only where the plant says that nothing is to be checked"


def test_a_model_of_another_signer_is_refused_and_so_is_one_that_nobody_can_check(
    model_file: Path, write_csv: Callable[..., Path], make_table: Any, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3)))]
    assert main([*arguments, "--oem-key", new_seed_file(tmp_path / "other.nk")]) == 1
    assert "not by the OEM's key" in capsys.readouterr().err
    assert main(arguments) == 1
    assert "give --oem-key" in capsys.readouterr().err
    assert main([*arguments, "--oem-key", "nonsense"]) == 1
    assert "not a NATS user public key" in capsys.readouterr().err


def test_the_key_that_is_given_goes_before_the_one_in_the_settings(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, tmp_path: Path
) -> None:
    other, settings = new_seed_file(tmp_path / "other.nk"), tmp_path / "site.toml"
    ask = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3))), "--config", str(settings)]
    for kept, given, code in ((other, oem[1], 0), (oem[1], other, 1)):
        settings.write_text(
            f'site_id = "p"\nservers = ["nats://a:1"]\noem_key = "{kept}"\n[data]\nkind = "csv"\npath = "x.csv"\n'
        )
        assert main([*ask, "--oem-key", given]) == code


def test_a_calibrated_version_says_at_the_plant_what_it_says_at_the_oem(
    version: ModelVersion, oem: tuple[Path, str], tmp_path: Path, write_csv: Callable[..., Path], make_table: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    n, grid = 200, score_grid()
    held = {name: tuple(np.where(grid >= 0.5, n, n // 2) / (n + 1.0)) for name in ("error", "size", "reach")}
    found = Calibration(
        kind="sets", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held, scale=1.5
    )
    calibrated = version.model_copy(update={"calibration": found, "signed_by": oem[1]})
    document = calibrated.to_document()
    path = tmp_path / "calibrated.json"
    path.write_text(json.dumps({**document, "signature": signature_of(document, oem[0])}))
    rows = [row[:3] for row in make_table(40)]
    ask = ["diagnose", "--model", str(path), "--input", str(write_csv(rows)), "--oem-key", oem[1]]
    assert main([*ask, "--coverage", "0.95"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == HEADER + SETS_HEADER
    samples = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    numbers = [{name: float(cell) for name, cell in sample.items()} for sample in samples]
    expected = Predictor(calibrated).diagnose(samples, coverage=0.95)
    assert {len(each.class_set or ()) for each in expected} == {1, 2} and any(each.abstained for each in expected)
    assert [line.split(",", 4)[4] for line in lines[1:]] == [
        f"{' '.join(each.class_set or ())},0.95,{(each.probabilities or {})[each.fault_class]:.4g},"
        f"{'yes' if each.abstained else 'no'},{each.reason}"
        for each in expected
    ]
    columns = CsvSource(kind="csv", path=Path("-"))
    told = list(diagnose_lines(calibrated, [json.dumps(sample).encode() for sample in numbers], columns, 0.95))[:-1]
    assert [(each["class_set"], each["coverage"], each["abstained"], each["reason"]) for each in told] == [
        (list(each.class_set or ()), 0.95, each.abstained, each.reason) for each in expected
    ]
    likely = [(each.probabilities or {})[each.fault_class] for each in expected]
    assert [each["probability"] for each in told] == pytest.approx(likely, rel=1e-12)
    lines_file = tmp_path / "x.jsonl"
    lines_file.write_text(json.dumps(numbers[0]))
    assert main([*ask, "--coverage", "0.95", "--input", str(lines_file)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["coverage"] == 0.95, "of a stream too"
    for wrong, said in (("0.999", "needs 999 held-out rows"), ("1.5", "coverage must lie between 0 and 1")):
        for form in ([], ["--json"]):
            assert main([*ask, *form, "--coverage", wrong]) == 1
            told_of = capsys.readouterr()
            assert said in told_of.err and told_of.out == "", "no header of a table that does not come"


def test_a_version_of_before_has_no_coverage_to_give(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_csv([row[:3] for row in make_table(4)])
    ask = ["diagnose", "--model", str(model_file), "--input", str(path), "--oem-key", oem[1], "--coverage", "0.9"]
    assert main(ask) == 1 and "carries no calibration" in capsys.readouterr().err


def test_an_interval_by_the_estimate_is_at_the_plant_what_it_is_at_the_oem(
    version: ModelVersion, write_csv: Callable[..., Path], make_table: Any
) -> None:
    gap, grid, n = Target(name="gap", unit="mm", low=0.0, high=8.0), score_grid(), 200
    held = {"spread": tuple(np.where(np.arange(STEPS) >= 300, n / (n + 1.0), 0.0).tolist())}
    found = Calibration(
        kind="spread", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held,
        spread=Spread(below=tuple(range(90, -10, -10)), above=tuple(range(0, 100, 10))),
    )
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.5}})
    fields = {name: getattr(version, name) for name in ModelVersion.model_fields}
    target = ModelVersion(**fields | {
        "spec": spec, "asset_type": version.asset_type.model_copy(update={"target": gap}), "calibration": found,
        "weights": np.array([[0.5, 0.3, 0.1, 0.05]]),
        "error_interval": ErrorInterval.implied(spec.loss.loss, gap, 0.02, 0.9),
    })
    rows = [row[:3] for row in make_table(12)]
    lines = list(diagnose(target, CsvSource(kind="csv", path=write_csv(rows))))
    assert lines[0] == ESTIMATE_HEADER + CONFORMAL_HEADER
    expected = Estimator(target).estimate([dict(zip(rows[0], row, strict=True)) for row in rows[1:]])
    told = [line.split(",")[6:9] for line in lines[1:]]
    intervals = [each.conformal for each in expected]
    assert told == [[f"{each.low:.6g}", f"{each.high:.6g}", "0.9"] for each in intervals if each is not None]
    assert len({round(each.high - each.low, 4) for each in intervals if each is not None}) > 2


@pytest.mark.parametrize("calibrated", [False, True])
def test_an_estimate_and_its_intervals_are_cut_to_the_targets_range_as_the_oem_cuts_them(
    version: ModelVersion, make_table: Any, calibrated: bool
) -> None:
    gap, grid = Target(name="gap", unit="mm", low=1.0, high=8.0), score_grid()
    held = {"absolute": tuple((np.where(grid >= 0.3, 200, 100) / 201.0)[len(grid) // 2 :])}
    held |= {name: tuple(np.where(grid >= 1.0, 200, 100) / 201.0) for name in ("size", "reach")}
    found = Calibration(kind="absolute", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=200),), held=held)
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}})
    fields = {name: getattr(version, name) for name in ModelVersion.model_fields}
    target = ModelVersion(**fields | {
        "spec": spec, "asset_type": version.asset_type.model_copy(update={"target": gap}),
        "weights": np.array([[3.0, 0.6, 0.2, -1.5]]), "calibration": found if calibrated else None,
        "error_interval": ErrorInterval.implied(spec.loss.loss, gap, 0.01, 0.9),
    })
    assert target.error_interval_at(0.9).below != target.error_interval_at(0.9).above
    rows = [dict(zip(make_table(1)[0][:3], map(float, row[:3]), strict=True)) for row in make_table(40)[1:]]
    columns = CsvSource(kind="csv", path=Path("-"))
    told = list(diagnose_lines(target, [json.dumps(row).encode() for row in rows], columns))[:-1]
    wanted = Estimator(target).estimate(rows)
    for name, values in (
        ("value", [each.value for each in wanted]), ("low", [each.interval.low for each in wanted]),
        ("high", [each.interval.high for each in wanted]),
        ("conformal_low", [each.conformal.low for each in wanted if each.conformal is not None]),
        ("conformal_high", [each.conformal.high for each in wanted if each.conformal is not None]),
    ):
        assert [each[name] for each in told if name in each] == pytest.approx(values, rel=1e-9)
        assert not values or {1.0, 8.0} & set(values), "some are cut"
    assert {each["unit"] for each in told} == {"mm"} and {each["confidence"] for each in told} == {0.9}
    if calibrated:
        assert [(each["abstained"], each["reason"]) for each in told] == [
            (each.abstained, each.reason) for each in wanted
        ]


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


def streamed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("way", ["by its name", "asked for", "from a pipe"])
def test_a_stream_is_answered_line_by_line_as_the_table_is(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, tmp_path: Path, way: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row[:3] for row in make_table(12)]
    arguments = ["diagnose", "--model", str(model_file), "--oem-key", oem[1], "--input"]
    assert main([*arguments, str(write_csv(rows)), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["rows"]
    lines = [json.dumps({name: float(cell) for name, cell in zip(rows[0], row, strict=True)}) for row in rows[1:]]
    lines.insert(3, " \t")  # passed over, and counted as a line
    path = tmp_path / ("x.NDJSON" if way == "by its name" else "x.txt")
    path.write_text("\r\n".join(lines))  # the last one without an end
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    given = [str(path)] if way == "by its name" else ["-"] if way == "from a pipe" else [str(path), "--ndjson"]
    assert main([*arguments, *given]) == 0
    *answers, end = streamed(capsys.readouterr().out)
    assert [each["line"] for each in answers] == [1, 2, 3, *range(5, 14)]
    assert [(each["fault_class"], each["severity"]) for each in answers] == [
        (row["fault_class"], row["severity"]) for row in table
    ]
    assert [each["robustness_radius"] for each in answers] == [row["robustness_radius"] for row in table]
    assert [row["row"] for row in table] == list(range(1, 13))
    assert end == {"end": True, "lines": 13, "answered": 12, "refused": 0, "model": "pump"}


def test_a_line_that_does_not_fit_is_told_and_the_next_is_answered(
    version: ModelVersion, make_table: Any
) -> None:
    source = CsvSource(kind="csv", path=Path("x.ndjson"), columns={"flow": "Q"})
    names, values = make_table(1)[0][:3], make_table(1)[1][:3]
    good = dict(zip(("Q", *names[1:]), map(float, values), strict=True))
    wrong = [
        b"{", b"[]", b'"x"', json.dumps(good | {"Q": "12"}).encode(), json.dumps(good | {"Q": True}).encode(),
        json.dumps(good | {"Q": float("nan")}).encode(), json.dumps(good | {"Q": 10**400}).encode(),
        json.dumps({**dict(zip(names, map(float, values), strict=True))}).encode(), b"[" * 100_000, b"\xff",
        json.dumps(good | {"note": "x" * 65_536}).encode(),
    ]
    fits = json.dumps(good | {"note": "machine 7"}).encode()
    *answers, end = diagnose_lines(version, [*wrong, fits], source)
    assert all(set(each) == {"line", "error"} and each["error"].startswith("line ") for each in answers[:-1])
    assert [
        next(word for word in ("JSON object", "JSON", "bytes", "a number", "finite", "no column 'Q'") if word in each)
        for each in (str(answer["error"]) for answer in answers[:-1])
    ] == [
        "JSON", "JSON object", "JSON object", "a number", "a number", "finite", "finite", "no column 'Q'", "bytes",
        "JSON", "bytes",
    ]
    assert answers[-1]["line"] == 12 and answers[-1]["fault_class"] in ("healthy", "leak")
    assert (end["lines"], end["answered"], end["refused"]) == (12, 1, 11)


def test_a_line_without_end_is_not_held_and_the_line_after_it_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(b"a" * 500_000 + b"\nb\n" + b"c" * LONGEST_LINE + b"\n\n")
    with opened_lines(path) as lines:
        found = list(lines)
    assert [len(each) > LONGEST_LINE for each in found] == [True, False, False, False]
    assert len(found[0]) <= LONGEST_LINE + 2 and found[1:] == [b"b", b"c" * LONGEST_LINE, b""]


def test_a_radius_without_end_is_a_word_in_every_form_of_json(
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
    assert answer["robustness_radius"] == row["robustness_radius"] == "Infinity"


def test_a_coverage_that_cannot_be_had_ends_the_stream(version: ModelVersion, make_table: Any) -> None:
    line = json.dumps(dict(zip(make_table(1)[0][:3], map(float, make_table(1)[1][:3]), strict=True))).encode()
    with pytest.raises(ConflictError, match="carries no calibration"):
        list(diagnose_lines(version, [line], CsvSource(kind="csv", path=Path("-")), 0.9))
    with pytest.raises(ConflictError, match="carries no calibration"):
        next(diagnose_lines(version, [b"no sample", line], CsvSource(kind="csv", path=Path("-")), 0.9))
