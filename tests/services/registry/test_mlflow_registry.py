from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from services.contracts.history.run import RoundRecord
from services.contracts.plans.gates import Gates
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import CertificateReport, ModelReport, SiteReport
from services.registry.mlflow_registry import ModelRegistry

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_registered_version_comes_back_bit_for_bit(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str, n_classes: int
) -> None:
    version = make_version(
        name=name,
        n_classes=n_classes,
        spec=TrainingSpec(label_flip_cost=math.inf, transport_norm="l1"),
        lower_bound=-math.inf,
        certified_gap=math.inf,
    )
    version.weights[0, :3] = [-0.0, 5e-324, 0.1 + 0.2]
    registered = registry.register(version, make_rounds(version.run_id), {"text": "report"})
    found = registry.get(name, registered.version)
    assert registered.version == "1"
    assert found.weights.tobytes() == version.weights.tobytes()
    assert found.to_document() == registered.to_document() == {**version.to_document(), "version": "1"}
    assert found.spec.label_flip_cost == math.inf and found.lower_bound == -math.inf


def a_report(version: ModelVersion, **changes: Any) -> ModelReport:
    figures = {
        "worst_case_risk": version.worst_case_risk, "objective": version.objective,
        "objective_name": version.objective_name, "lower_bound": version.lower_bound, "gap": version.certified_gap,
        "fresh_weight": version.fresh_weight, "rounds": version.rounds, "spec": version.spec,
    }
    said = {name: getattr(version, name) for name in ModelReport.COPIED}
    return ModelReport(
        **said, version="", sites=tuple(SiteReport(**dict(site)) for site in version.sites),
        asset_type=version.asset_type.name, fingerprint=version.asset_type.fingerprint,
        certificate=CertificateReport.model_validate(figures | changes), wanted_gap=1e-3, promotable=True, seconds=0.5,
    )


def test_a_report_comes_back_with_the_versions_number(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    version = make_version(name=name, lower_bound=-math.inf, certified_gap=math.inf)
    registered = registry.register(version, make_rounds(version.run_id), a_report(version))
    assert registry.report(registered) == a_report(version).model_copy(update={"version": registered.version})
    without = registry.register(make_version(name=name), make_rounds(version.run_id), {"text": "report"})
    assert registry.report(without) is None


@pytest.mark.parametrize("change", [{"gap": 1e-9}, {"worst_case_risk": 0.0}, {"lower_bound": 9.0}, {"rounds": 1}])
def test_a_report_with_another_certificate_is_not_the_versions(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str, change: dict[str, Any]
) -> None:
    version = make_version(name=name)
    registered = registry.register(version, make_rounds(version.run_id), a_report(version, **change))
    with pytest.raises(ConflictError, match="not the one that was registered"):
        registry.report(registered)


def test_the_mlflow_run_holds_parameters_rounds_and_files(
    registry: ModelRegistry, client: Any, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    version = make_version(name=name)
    registered = registry.register(
        version, make_rounds(version.run_id, 400), {"gap": math.inf}, {"report.html": "<p>page</p>"}
    )
    mlflow_run = registry.mlflow_run_id(name, registered.version)
    run = client.get_run(mlflow_run)
    assert run.info.status == "FINISHED"
    assert run.data.params["transport_norm"] == "l2" and run.data.params["radius_rule"] == "samples"
    assert run.data.tags["ballast.run_id"] == version.run_id
    assert run.data.metrics["certified_gap"] == version.certified_gap
    assert run.data.metrics["site/plant-b/f1"] == 0.9
    upper = client.get_metric_history(mlflow_run, "upper")
    assert [(point.step, point.value) for point in upper] == [(k, 1.0 / k) for k in range(1, 401)]
    assert [point.step for point in client.get_metric_history(mlflow_run, "lower")] == list(range(2, 401))
    assert sorted(item.path for item in client.list_artifacts(mlflow_run)) == ["report.html", "report.json"]


def test_labels_are_what_a_list_shows(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    first, second = make_version(name=name), make_version(name=name, f1=None, certified_gap=0.1)
    for version in (first, second):
        registry.register(version, (), {})
    newest, oldest = registry.versions(name)
    assert (newest.version, oldest.version) == ("2", "1")
    assert newest.aliases == ("challenger",) and oldest.aliases == ()
    assert (newest.certified_gap, newest.f1, newest.run_id) == (0.1, None, second.run_id)
    assert oldest.f1 == first.f1 and oldest.created_at == first.created_at
    assert oldest.worst_case_risk == first.worst_case_risk
    assert oldest.mlflow_run_id == registry.mlflow_run_id(name, "1")
    (summary,) = [model for model in registry.models() if model.name == name]
    assert (summary.challenger, summary.champion, summary.asset_type) == ("2", None, "triplex-pump")


def test_the_same_run_registered_twice_is_one_version(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    version = make_version(name=name)
    first = registry.register(version, make_rounds(version.run_id), {})
    again = registry.register(version, make_rounds(version.run_id), {})
    assert first.version == again.version == "1" and len(registry.versions(name)) == 1


@pytest.mark.parametrize("dies_in", ["create_logged_model", "create_model_version", "set_registered_model_alias"])
def test_a_registration_that_died_in_the_middle_is_finished_by_the_next(
    registry: ModelRegistry,
    client: Any,
    make_version: MakeVersion,
    make_rounds: MakeRounds,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    dies_in: str,
) -> None:
    version = make_version(name=name)
    rounds = make_rounds(version.run_id)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(registry._store.client, dies_in, die)
        with pytest.raises(KeyboardInterrupt):
            registry.register(version, rounds, {})
    registered = registry.register(version, rounds, {})
    assert registered.version == "1" and registry.resolve(name, "challenger") == "1"
    experiment = client.get_experiment_by_name(f"ballast-{name}")
    runs = client.search_runs([experiment.experiment_id])
    assert [run.info.run_id for run in runs] == [registry.mlflow_run_id(name, "1")]
    assert len(client.get_metric_history(runs[0].info.run_id, "upper")) == len(rounds)


def test_a_run_that_two_processes_register_at_once_is_one_version(
    registry: ModelRegistry, make_version: MakeVersion, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version(name=name)
    entries = registry._store.entries
    registry.register(version, (), {})
    answers: list[list[Any]] = [[]]

    def first_look_finds_nothing(wanted: str, run_id: str | None = None) -> list[Any]:
        return answers.pop() if answers and run_id else entries(wanted, run_id)

    monkeypatch.setattr(registry._store, "entries", first_look_finds_nothing)
    assert registry.register(version, (), {}).version == "1"
    assert [entry.version for entry in registry.versions(name)] == ["1"]


def test_promotions_and_rollbacks(registry: ModelRegistry, client: Any, make_version: MakeVersion, name: str) -> None:
    for _ in range(3):
        registry.register(make_version(name=name), (), {})
    with pytest.raises(NotFoundError, match="no model .* with alias 'champion'.*; its challenger, version 3, answers"):
        registry.get(name, "champion")
    for missing, alias in (("nobody", "champion"), (name, "previous-champion"), (name, "9")):
        with pytest.raises(NotFoundError, match="in the registry$"):
            registry.resolve(missing, alias)
    with pytest.raises(ConflictError, match="has no champion"):
        registry.rollback(name)
    assert registry.promote(name, "1", actor="anna", reason="first of all").version == "1"
    with pytest.raises(ConflictError, match="no champion before version 1"):
        registry.rollback(name)
    registry.promote(name, "2")
    registry.promote(name, "challenger")
    assert registry.get(name, "champion").version == "3" and registry.resolve(name, "previous-champion") == "2"
    registry.promote(name, "3")
    assert registry.rollback(name, actor="berta", reason="alarms at night").version == "2"
    assert registry.resolve(name, "previous-champion") == "1"
    assert registry.rollback(name).version == "1"
    with pytest.raises(NotFoundError):
        registry.resolve(name, "previous-champion")
    assert registry.resolve(name, "challenger") == "3"
    tags = client.get_model_version(name, "2").tags
    assert (tags["ballast.rolled_back_to_by"], tags["ballast.rolled_back_to_because"]) == ("berta", "alarms at night")
    assert client.get_model_version(name, "1").tags["ballast.promoted_because"] == "first of all"


def test_a_version_behind_a_gate_is_not_promoted_and_nothing_changes(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    registry.register(make_version(name=name), (), {})
    registry.promote(name, "1")
    registry.register(make_version(name=name, certified_gap=0.5), (), {})
    with pytest.raises(ConflictError, match="version 2 .* is not promoted: max_gap: 0.5 is not at or below 0.001"):
        registry.promote(name, "2", gates=Gates())
    assert registry.resolve(name, "champion") == "1"


def test_what_is_not_there_is_said_on_one_line(registry: ModelRegistry, make_version: MakeVersion, name: str) -> None:
    registry.register(make_version(name=name), (), {})
    calls: list[Callable[[], object]] = [
        lambda: registry.get(name, "2"),
        lambda: registry.get(name, "0"),
        lambda: registry.get(name, "99999999999999999999"),
        lambda: registry.get(name, "no-such-alias"),
        lambda: registry.get(name, ""),
        lambda: registry.get("no-such-model", "1"),
        lambda: registry.get("it's", "champion"),
        lambda: registry.versions("no-such-model"),
        lambda: registry.versions("x' OR name != 'x"),
        lambda: registry.promote(name, "2"),
        lambda: registry.rollback("no-such-model"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError) as caught:
            call()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 250
        assert str(caught.value).startswith("no model"), "in our own words"


@pytest.mark.parametrize("reserved", ["champion", "challenger", "previous-champion", "latest", "versions"])
def test_reserved_names_are_refused(registry: ModelRegistry, make_version: MakeVersion, reserved: str) -> None:
    with pytest.raises(InvalidInputError, match="reserved"):
        registry.register(make_version(name=reserved), (), {})


def test_a_name_belongs_to_one_asset_type(registry: ModelRegistry, make_version: MakeVersion, name: str) -> None:
    version = make_version(name=name)
    registry.register(version, (), {})
    other = version.asset_type.model_copy(update={"name": "turbine"})
    with pytest.raises(ConflictError, match="is for asset type triplex-pump, not turbine"):
        registry.register(make_version(name=name, asset_type=other), (), {})


def test_a_foreign_model_in_the_same_mlflow_is_left_alone(
    registry: ModelRegistry, client: Any, make_version: MakeVersion, name: str
) -> None:
    client.create_registered_model(name)
    client.create_model_version(name, source="/nowhere")
    with pytest.raises(ConflictError, match="not Ballast's"):
        registry.register(make_version(name=name), (), {})
    with pytest.raises(NotFoundError, match="not Ballast's"):
        registry.get(name, "1")
    assert name not in {model.name for model in registry.models()} and registry.versions(name) == ()


def test_a_changed_document_is_not_loaded(
    registry: ModelRegistry, registry_home: Path, make_version: MakeVersion, name: str
) -> None:
    registry.register(make_version(name=name), (), {})
    (document,) = (registry_home / "artifacts" / name).rglob("artifacts/model.json")
    text = document.read_text()
    document.write_text(text.replace('"rounds": 3', '"rounds": 4'))
    with pytest.raises(ConflictError, match="was changed since it was registered"):
        registry.get(name, "1")
    document.write_bytes(text.encode().replace(b'"rounds"', b'"\xf2ounds"'))  # a bit that a disk turned
    with pytest.raises(ConflictError, match="was changed since it was registered"):
        registry.get(name, "1")


def test_files_that_are_gone_are_no_version_that_never_was(
    registry: ModelRegistry, registry_home: Path, make_version: MakeVersion, name: str
) -> None:
    registry.register(make_version(name=name), (), {})
    (registry_home / "artifacts" / name).rename(registry_home / "artifacts" / f"{name} elsewhere")
    with pytest.raises(UnavailableError) as caught:
        registry.get(name, "1")
    said = "the files of version 1 of model {} are gone, or their store does not answer"
    assert str(caught.value) == said.format(name), "no place of theirs, for a viewer may ask"
    (registry_home / "artifacts" / f"{name} elsewhere").rename(registry_home / "artifacts" / name)
    assert registry.get(name, "1").version == "1"


@pytest.mark.parametrize("attachment", ["../outside.html", "/tmp/outside.html", "report.json", "", "a/b.txt"])
def test_an_attachment_needs_a_plain_name(
    registry: ModelRegistry, make_version: MakeVersion, name: str, attachment: str
) -> None:
    with pytest.raises(InvalidInputError, match="plain file name"):
        registry.register(make_version(name=name), (), {}, {attachment: "text"})


def test_weights_are_those_of_the_version_that_was_asked_for(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    made = [registry.register(make_version(name=name, seed=seed), (), {}) for seed in range(2)]
    for version in made:
        np.testing.assert_array_equal(registry.get(name, version.version).weights, version.weights)
    assert not np.array_equal(made[0].weights, made[1].weights)
