"""All classes as one problem (Crammer-Singer) from a plan to a diagnosis, proven by its files and at the plant."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from api.cli.main import main
from api.console.views.words import certificate_words
from flows.publish import promote_if_gates_hold
from models.problem import RobustSpec, SiteProblem
from models.worst_case.crammer_singer import crammer_singer_cut
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import public_key
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import check_problem
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.predictor.predictor import Predictor
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.site_agent.cli import main as site_main
from services.site_agent.settings import CsvSource
from tests.flows.rest import asked_as_viewer

GRADES = ("none", "slight", "strong")
WEAR = AssetType(
    name="wear",
    features=tuple(Feature(name=name, unit="1", low=0.0, high=10.0) for name in ("heat", "noise")),
    fault_classes=tuple(FaultClass(name=name, severity=number) for number, name in enumerate(GRADES)),
)
JOINT = {"multi_class": "crammer_singer"}
SITES = ("plant-1", "plant-2", "plant-3")


def write_grades(path: Path, number: int, count: int) -> None:
    """Grades of one quantity: no half-space tells the middle one from the rest."""
    draw = np.random.default_rng([31, number])
    heat, noise = draw.uniform(0.0, 10.0, count), draw.uniform(0.0, 10.0, count)
    grade = np.digitize(heat + 0.1 * noise + 0.2 * number + 0.3 * draw.standard_normal(count), [3.8, 7.2])
    with path.open("w", newline="") as file:
        rows = [[round(h, 6), round(n, 6), GRADES[g]] for h, n, g in zip(heat, noise, grade, strict=True)]
        csv.writer(file).writerows([["heat", "noise", "label"], *rows])


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base, sources = tmp_path_factory.mktemp("grades"), {}
    for number, site in enumerate(SITES):
        write_grades(base / f"{site}.csv", number, 60 + 6 * number)
        sources[site] = CsvSource(kind="csv", path=base / f"{site}.csv")
    with opening_works(base, new_sqlite(), WEAR, sources) as opened:
        yield opened


def site_file(works: Any, folder: Path, key: str) -> Path:
    path = folder / "site.toml"
    path.write_text(
        f'site_id = "plant-2"\nservers = ["nats://nowhere:1"]\noem_key = "{key}"\n'
        f'[data]\nkind = "csv"\npath = "{works.sources["plant-2"].path}"\n'
    )
    return path


def true_risks(works: Any, version: ModelVersion) -> list[float]:
    """Each plant's worst case at the planes, by the risk of all classes' planes, which the rounds do not use."""
    flat = np.concatenate([version.weights[:, :-1].ravel(), version.weights[:, -1]])
    found = []
    for site in version.sites:
        part = works.dataset(site.site_id).train
        spec = RobustSpec(site.radius, version.spec.label_flip_cost)
        found.append(crammer_singer_cut(flat, SiteProblem(part.features, part.classes.astype(float), spec), 3).risk)
    return found


@pytest.mark.parametrize("reveal", ["each site", "sums"])
def test_a_wide_ball_is_trained_without_a_question_that_plants_refuse(works: Any, reveal: str) -> None:
    """The first cuts are all but flat, and say nothing of what the ball adds to the norm: their least is far off."""
    spec = JOINT | {"radius": {"rule": "fixed", "value": 0.3}, "label_flip_cost": 0.2}
    plan = works.plan(f"wide-{reveal.split()[0]}", spec=spec, reveal=reveal, gap=1e-2, max_rounds=20)
    _, trained, version = works.train(plan)
    assert version.is_certified and version.certified_gap <= 1e-2, trained.rounds


@pytest.mark.parametrize(("reveal", "mixture"), [("each site", 0.2), ("sums", 0.0)])
def test_all_classes_are_trained_as_one_problem_from_a_plan(
    works: Any, reveal: str, mixture: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"grades-{reveal.split()[0]}"
    plan = works.plan(
        name, spec=JOINT, reveal=reveal, mixture={"norm": "l2", "radius": mixture}, gap=3e-2, max_rounds=40,
        parameters={"questions": 2} if reveal == "sums" else {},
    )
    run, trained, version = works.train(plan)
    assert version.weights.shape == (3, 3) and not version.weights[0].any()
    assert version.is_certified and version.certified_gap <= 3e-2, trained.rounds
    risks = true_risks(works, version)
    if reveal == "sums":
        # A plant that may not tell its exact cut tells a higher risk: a bound all the same, and within the gap.
        true = float(np.dot(risks, [site.weight for site in version.sites]))
        assert true - 1e-9 <= version.objective
        assert version.objective * (1.0 - version.certified_gap) <= true * (1.0 + 1e-9)
    else:
        assert [site.worst_case_risk for site in version.sites] == pytest.approx(risks)
        # One mixture of the ball for all classes: the worst one of these risks.
        centre = np.array([site.weight for site in version.sites])
        away = np.array(risks) - np.mean(risks)
        assert version.objective == pytest.approx(centre @ risks + mixture * np.linalg.norm(away), abs=1e-9)
    assert version.f1 is not None and version.f1 > 0.7

    again = ModelVersion.from_document(json.loads(json.dumps(version.to_document())))
    assert again.spec == version.spec and np.array_equal(again.weights, version.weights)
    page = report_page(model_report(version, run, works.context.store.runs.get_rounds(run.run_id)))
    for said in (page, " ".join(certificate_words(version))):
        assert "one problem for all 3 classes" in said and "sums over 3 problems" not in said

    monkeypatch.setenv("BALLAST_HOME", str(works.context.settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", works.context.settings.database)
    files, key = tmp_path / "files", public_key(works.context.settings.nats_seed)
    assert main(["verify", f"{name}:{version.version}", "--save", str(files)]) == 0
    assert main(["verify", "--file", str(files), "--oem-key", key]) == 0
    document = json.loads((files / "model.json").read_text())
    swapped = [document["weights"][0], *document["weights"][:0:-1]]
    (files / "model.json").write_text(json.dumps({**document, "weights": swapped}))
    capsys.readouterr()
    assert main(["verify", "--file", str(files)]) == 1 and "its weights differ" in capsys.readouterr().err
    (files / "model.json").write_text(json.dumps(document))
    assert site_main(["verify", str(files / "model.json"), "--config", str(site_file(works, tmp_path, key))]) == 0
    said = capsys.readouterr().out
    assert ("checked: the own worst-case risk" in said) == (reveal == "each site")
    assert ("checked: the own cuts lie below the own risk" in said) == (reveal == "each site")


def test_its_version_diagnoses_over_rest_and_is_exported(works: Any) -> None:
    plan = works.plan("served", spec=JOINT, gap=5e-2, gates={"max_gap": 5e-2})
    run, _, version = works.train(plan)
    assert "champion" in promote_if_gates_hold(works.context, run, version)
    version = works.context.registry.get("served", version.version)
    test = works.dataset("plant-1").test
    samples = [{"heat": 10.0 * row[0], "noise": 10.0 * row[1]} for row in test.features.tolist()]
    diagnosed = Predictor(version).diagnose(samples)
    assert np.mean([GRADES.index(each.fault_class) for each in diagnosed] == test.classes) > 0.6
    with asked_as_viewer(works.context.settings) as ask:
        code, told = ask("POST", "/v1/models/served/diagnose", {"samples": samples[:4]})
    assert code == 200, told
    assert [each["fault_class"] for each in told["diagnoses"]] == [each.fault_class for each in diagnosed[:4]]
    assert "slight" in c99_header(version)


@pytest.mark.parametrize(
    ("spec", "said"),
    [({"loss": "logistic"}, "set loss to hinge"), ({"support": "sensor_ranges"}, "support to unbounded")],
)
def test_what_is_not_its_problem_is_refused_on_one_line(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TrainingSpec.model_validate({**JOINT, **spec})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "fdr-sm", "reveal": "each site"}, "crammer_singer is trained by cohort-bundle, level-bundle"),
        ({"tuning": "auto"}, "leave out the tuning"),
        ({"method": "level-bundle-plain", "noise": {"epsilon": 1.0}}, "noise is scaled for one plane a class"),
    ],
)
def test_what_does_not_train_it_is_refused_where_the_plan_is_made(change: dict[str, Any], said: str) -> None:
    plan = Plan.model_validate({"name": "grades", "asset_type": "wear", "spec": JOINT} | change)
    with pytest.raises(InvalidInputError, match=said) as refused:
        check_problem(plan, WEAR)
    assert "\n" not in str(refused.value)


def test_the_default_is_not_written_so_that_plants_and_digests_of_before_stand() -> None:
    assert "multi_class" not in TrainingSpec().model_dump()
    joint = TrainingSpec.model_validate(JOINT)
    assert TrainingSpec.model_validate_json(joint.model_dump_json()) == joint != TrainingSpec()
