"""Labels of versions: what a list shows, also of versions from before their objective stood apart."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import (
    ASSET_TYPE,
    LONGEST_TAG,
    RESERVED_NAMES,
    check_known_name,
    check_new_name,
    model_summary,
    summary,
    units,
    version_tags,
)
from tests.versions import a_version

KIND = AssetType(
    name="pump", features=(Feature(name="flow", unit="l/min", low=0, high=1),),
    fault_classes=tuple(FaultClass(name=name, severity=1) for name in ("healthy", "leak")),
    target=Target(name="wear", unit="mm", low=0, high=1),
)
EPSILON = TrainingSpec(loss={"name": "epsilon_insensitive", "epsilon": 0.1})


def test_a_label_says_all_that_a_list_shows_and_what_proves_it() -> None:
    version = a_version(
        KIND, np.zeros((1, 2)), spec=EPSILON, mae=0.3, coverage=0.91, worst_case_risk=0.4, fresh_weight=0.75,
        certificate_sha256="c" * 64,
    )
    tags = version_tags(version, "d" * 64)
    assert (tags["ballast.certificate"], tags["ballast.document_sha256"]) == ("c" * 64, "d" * 64)
    found = summary(SimpleNamespace(name="pump", version=3, run_id="r", tags=tags), {"champion": "3", "challenger": 4})
    assert (found.mae, found.coverage, found.worst_case_risk, found.f1) == (0.3, 0.91, 0.4, None)
    assert (found.task, found.certified_gap, found.fresh_weight, found.aliases) == (
        "regression", version.certified_gap, 0.75, ("champion",),
    )
    assert found.fingerprint == KIND.fingerprint and found.created_at == version.created_at
    assert version_tags(a_version(KIND, np.zeros((1, 2))), "")["ballast.certificate"] == "none"


@pytest.mark.parametrize("tag", ["ballast.run_id", "ballast.gap", "ballast.fresh_weight", "ballast.fingerprint"])
def test_a_label_without_a_tag_is_said_to_be_changed(tag: str) -> None:
    tags = version_tags(a_version(KIND, np.zeros((1, 2))), "")
    del tags[tag]
    with pytest.raises(ConflictError, match=f"version 3 of model pump lacks the tag {tag}"):
        summary(SimpleNamespace(name="pump", version="3", run_id="r", tags=tags), {})


@pytest.mark.parametrize(("tag", "text"), [
    ("ballast.run_id", "another"), ("ballast.gap", "small"), ("ballast.rounds", "1.5"), ("ballast.f1", ""),
    ("ballast.created_at", "today"), ("ballast.worst_case_risk", "low"), ("ballast.task", "guessing"),
])
def test_a_label_with_a_tag_that_does_not_fit_is_said_to_be_changed(tag: str, text: str) -> None:
    tags = version_tags(a_version(KIND, np.zeros((1, 2)), f1=0.9), "") | {tag: text}
    with pytest.raises(ConflictError, match=f"version 3 of model pump has a tag {tag} that does not fit: it was"):
        summary(SimpleNamespace(name="pump", version="3", run_id="r", tags=tags), {})


@pytest.mark.parametrize(("tags", "said"), [({}, "lacks the tag"), ({ASSET_TYPE: "Pump 7"}, "that does not fit")])
def test_a_model_whose_asset_type_was_changed_is_said_to_be_so(tags: dict[str, str], said: str) -> None:
    with pytest.raises(ConflictError, match=f"model pump .*{said}.*was changed in MLflow"):
        model_summary(SimpleNamespace(name="pump", tags=tags, aliases={}))
    entry = SimpleNamespace(name="pump", tags={ASSET_TYPE: "rig"}, aliases={"champion": 3, "previous-champion": "2"})
    found = model_summary(entry)
    assert (found.asset_type, found.champion, found.challenger, found.previous_champion) == ("rig", "3", None, "2")


def test_the_target_has_a_unit_where_it_is_estimated() -> None:
    assert units(a_version(KIND, np.zeros((1, 2)))) == {"flow": "l/min"}
    assert units(a_version(KIND, np.zeros((1, 2)), spec=EPSILON)) == {"flow": "l/min", "wear": "mm"}


def test_units_stand_in_a_label_as_long_as_mlflow_holds_them() -> None:
    def tags(width: int) -> dict[str, str]:
        features = tuple(Feature(name=f"s{number:03d}", unit="u" * 30, low=0, high=1) for number in range(118))
        last = Feature(name="last", unit="u" * width, low=0, high=1)
        kind = AssetType(name="pump", features=(*features, last), fault_classes=KIND.fault_classes)
        return version_tags(a_version(kind, np.zeros((1, 120))), "")

    longest = max(width for width in range(1, 41) if "ballast.units" in tags(width))
    assert len(tags(longest)["ballast.units"]) == LONGEST_TAG and "ballast.units" not in tags(longest + 1)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES | {"latest", "models", "runs", "versions", "aliases"}))
def test_no_model_has_a_name_that_is_part_of_an_address(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is a reserved name"):
        check_new_name(name)
    check_known_name(name)


@pytest.mark.parametrize("name", ["", "Pump", "-pump", "pump'", "a" * 41, "pump\n", "a/b", "pu_mp"])
def test_what_is_no_name_gets_into_no_query(name: str) -> None:
    with pytest.raises(InvalidInputError, match="1 to 40 lower-case letters"):
        check_new_name(name)
    with pytest.raises(NotFoundError, match="no model"):
        check_known_name(name)


@pytest.mark.parametrize(("method", "before"), [("level-bundle", 0.4), ("fedavg", None)])
def test_a_label_from_before_names_a_risk_over_balls_only_where_its_method_minimised_it(
    method: str, before: float | None
) -> None:
    kind = AssetType(
        name="pump", features=(Feature(name="flow", unit="l/min", low=0, high=1),),
        fault_classes=tuple(FaultClass(name=name, severity=1) for name in ("healthy", "leak")),
    )
    version = ModelVersion(
        name="pump", run_id="0" * 32, plan="nightly", method=method, asset_type=kind, spec=TrainingSpec(),
        weights=np.zeros((1, 2)), rounds=1, certified_gap=0.1, worst_case_risk=0.4, objective=0.3, objective_name="it",
        lower_bound=0.2, fresh_weight=1.0, created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    tags = version_tags(version, "0" * 64)
    entry = SimpleNamespace(name="pump", version="1", run_id="run", tags=tags)
    assert summary(entry, {}).worst_case_risk == 0.4
    entry.tags = {name: text for name, text in tags.items() if name != "ballast.objective"}
    assert summary(entry, {}).worst_case_risk == before
