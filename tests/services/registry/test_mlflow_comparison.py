"""What MLflow's pages can find, show and compare of versions, asked of the real store through its own client."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.history.run import RoundRecord
from services.contracts.machines.asset_type import AssetType, Feature
from services.contracts.problems.lift import FourierLiftSpec
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.registry.descriptions import LONGEST, model_description, version_description
from services.registry.labels import LONGEST_TAG, version_tags
from services.registry.mlflow_registry import ModelRegistry
from tests.services.registry.test_mlflow_registry import a_report

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]


@pytest.fixture
def runs(
    registry: ModelRegistry, client: Any, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> list[Any]:
    """MLflow's runs of two versions of a model, the worse one first."""
    for gap, f1, reveal in ((0.1, 0.8, "each site"), (8.1e-4, 0.93, "sums")):
        version = make_version(
            name=name, certified_gap=gap, f1=f1, reveal=reveal, certificate_sha256="cd" * 32 if gap < 0.1 else ""
        )
        report = a_report(version)
        registry.register(version, make_rounds(version.run_id), report)
    experiment = client.get_experiment_by_name(f"ballast-{name}").experiment_id
    return list(client.search_runs([experiment], order_by=["metrics.certified_gap DESC"]))


def test_runs_are_found_by_tags_and_figures(runs: list[Any], client: Any) -> None:
    experiment = [runs[0].info.experiment_id]

    def found(wanted: str) -> list[str]:
        return [run.info.run_id for run in client.search_runs(experiment, wanted)]

    worse, better = (run.info.run_id for run in runs)
    assert found("tags.`ballast.reveal` = 'sums'") == [better] == found("metrics.certified_gap < 0.001")
    assert found("params.reveal = 'each site'") == [worse] == found("tags.`ballast.certificate` = 'none'")
    assert found(f"tags.`ballast.certificate` = '{'cd' * 32}' AND metrics.f1 > 0.9") == [better]
    plan, kind = "tags.`ballast.plan` = 'nightly'", "tags.`ballast.asset_type` = 'triplex-pump'"
    assert sorted(found(f"{plan} AND {kind}")) == sorted([worse, better])
    assert [run.data.tags["ballast.lower_bound"] for run in runs] == ["0.29975", "0.29975"]


def test_versions_stand_side_by_side_under_the_same_names(runs: list[Any], client: Any, name: str) -> None:
    worse, better = (run.data for run in runs)
    assert set(worse.metrics) == set(better.metrics) and set(worse.params) == set(better.params)
    assert {"gap", "upper", "lower", "certified_gap", "f1", "fairness/worst_case_risk/gini"} <= set(better.metrics)
    assert better.metrics["fairness/worst_case_risk/gini"] == pytest.approx((0.39 - 0.21) / (2 * (0.39 + 0.21)))
    assert better.metrics["fairness/worst_case_risk/worst_site"] == 0.39
    for run in runs:  # a point a round, and no point of the end among them
        assert [point.step for point in client.get_metric_history(run.info.run_id, "gap")] == [2, 3]
        assert len(client.get_metric_history(run.info.run_id, "certified_gap")) == 1
    models = [client.get_logged_model(run.outputs.model_outputs[0].model_id) for run in runs]
    figures = [{metric.key: metric.value for metric in model.metrics} for model in models]
    assert [each["certified_gap"] for each in figures] == [0.1, 8.1e-4]
    assert [model.params["reveal"] for model in models] == ["each site", "sums"]


def test_datasets_say_what_the_plants_told_and_hold_no_data(runs: list[Any]) -> None:
    told = [{each.dataset.name: each.dataset for each in run.inputs.dataset_inputs} for run in runs]
    assert [set(each) for each in told] == [{"plant 1 of 2", "plant 2 of 2"}] * 2
    first, second = told
    for site, dataset in first.items():
        assert dataset.digest == second[site].digest, "the plants told the same"
        assert json.loads(dataset.source) == {"kept_by": site}
        assert "plant-a" not in str(dataset) and "plant-b" not in str(dataset)
        columns = json.loads(dataset.schema)["mlflow_colspec"]
        assert [set(column) for column in columns] == [{"name", "type", "required"}] * 4
    assert first["plant 1 of 2"].digest != first["plant 2 of 2"].digest


def test_a_version_and_its_model_are_described_for_readers(runs: list[Any], client: Any, name: str) -> None:
    about = client.get_model_version(name, "2").description
    assert "certified gap of **0.00081** in 3 rounds" in about and "| pressure | bar | 0 to 310 | yes |" in about
    assert "| what the coordinator saw | sums |" in about and "cd" * 32 in about
    assert runs[1].data.tags["mlflow.note.content"] == about
    model = client.get_registered_model(name).description
    assert "Fault diagnosis of triplex-pump" in model and "`champion` is the version in service" in model
    tags = client.get_model_version(name, "2").tags
    assert json.loads(tags["ballast.units"])["oil_temperature"] == "degC" and "mlflow.note.content" not in tags


def test_hundreds_of_sensors_fit_into_what_mlflow_holds(make_version: MakeVersion) -> None:
    made = make_version()
    many = tuple(Feature(name=f"sensor_{k:04d}", unit="m/s^2", low=-1.0, high=1.0) for k in range(600))
    kind = AssetType(name="triplex-pump", features=many, fault_classes=made.asset_type.fault_classes)
    version = made.model_copy(update={"asset_type": kind, "note": "x" * 9000})
    assert len(version_description(version)) <= LONGEST
    assert "ballast.units" not in version_tags(version, "0" * 64)
    assert all(len(value) <= LONGEST_TAG for value in version_tags(version, "0" * 64).values())


@pytest.mark.parametrize(
    ("count", "end"), [(40, "| sensor_39 | 1 | 0 to 1 | yes |"), (43, "and 3 more, in the model's metadata")]
)
def test_a_description_names_the_first_sensors_and_how_many_more(
    make_version: MakeVersion, count: int, end: str
) -> None:
    made = make_version()
    many = tuple(Feature(name=f"sensor_{k}", unit="1", low=0.0, high=1.0) for k in range(count))
    said = version_description(made.model_copy(update={
        "asset_type": made.asset_type.model_copy(update={"features": many})
    }))
    assert said.endswith(end) and "sensor_39" in said and "sensor_40" not in said


def test_names_of_sensors_open_no_tag_and_no_cell(make_version: MakeVersion, tmp_path: Path) -> None:
    made = make_version()
    odd = made.model_copy(update={"note": "<script>alert(1)</script> a | b\nc"})
    said = version_description(odd)
    assert "<script" not in said and "a \\| b c" in said


def test_words_from_outside_are_no_links_and_no_pictures(make_version: MakeVersion) -> None:
    """MLflow's pages load a picture from wherever a description says."""
    made, picture = make_version(), "![x](https://elsewhere/x.png)"
    first, *others = made.asset_type.features
    features = (first.model_copy(update={"unit": picture}), *others)
    kind = made.asset_type.model_copy(update={"features": features, "description": picture})
    said = version_description(made.model_copy(update={"note": picture, "asset_type": kind}))
    assert (said.count("!&#91;x](https"), "![" in said) == (2, False)
    assert "!&#91;x]" in model_description(kind) and "![" not in model_description(kind)


def test_what_the_ball_is_of_under_a_lift_is_described(make_version: MakeVersion) -> None:
    made, stretched = make_version(), "The ball is one of lifted features"
    lift = FourierLiftSpec(components=4, bandwidth=1.0)
    assert stretched not in version_description(made)
    assert stretched in version_description(
        made.model_copy(update={"spec": made.spec.model_copy(update={"lift": lift})})
    )


def test_of_what_is_trained_without_a_ball_no_risk_is_called_unknown(make_version: MakeVersion) -> None:
    made = make_version()
    spec = TrainingSpec.model_validate({"loss": "cross_entropy"})
    soft = made.model_copy(update={"spec": spec, "worst_case_risk": None})
    assert "| worst-case risk | none: trained without a ball |" in version_description(soft)
    assert "without a ball" not in version_description(made)


def test_on_sums_the_risk_that_plants_tell_from_above_is_called_a_bound(make_version: MakeVersion) -> None:
    made = make_version().model_copy(update={"worst_case_risk": 0.25})
    for reveal, said in (("sums", "at most 0.25"), ("each site", "0.25")):
        assert f"| worst-case risk | {said} |" in version_description(made.model_copy(update={"reveal": reveal}))


@pytest.mark.parametrize(("rounds", "said"), [(1, "in 1 round: "), (2, "in 2 rounds: ")])
def test_a_week_of_one_round_is_said_so(
    make_version: Callable[..., ModelVersion], rounds: int, said: str
) -> None:
    about = version_description(make_version().model_copy(update={"rounds": rounds}))
    assert said in about and "no model of its kind has one below" in about
