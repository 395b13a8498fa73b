"""What the registry asks of a real MLflow and makes of the answers: order, aliases, addresses, what goes last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.registry import labels
from services.registry.mlflow_registry import ModelRegistry
from services.verification.version import CERTIFICATE

MakeVersion = Callable[..., ModelVersion]


def test_the_tenth_version_is_newer_than_the_ninth(
    registry: ModelRegistry, client: Any, make_version: MakeVersion, name: str
) -> None:
    registry.register(make_version(name=name), (), {})
    for number in range(2, 10):
        client.create_model_version(name, source=f"/nowhere/{number}", tags={labels.RUN_ID: f"f{number:031x}"})
    newest = registry.register(make_version(name=name), (), {})
    assert newest.version == "10" and registry.resolve(name, "challenger") == "10"
    numbers = [str(entry.version) for entry in registry._store.entries(name)]
    assert numbers == [str(number) for number in range(1, 11)]
    assert registry.resolve(name, "0010") == "10"


def test_a_run_that_is_registered_again_takes_no_alias_from_a_newer_one(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    first = make_version(name=name)
    registry.register(first, (), {})
    registry.register(make_version(name=name), (), {})
    assert registry.register(first, (), {}).version == "1" and registry.resolve(name, "challenger") == "2"


def test_versions_that_others_made_are_never_the_newest(
    registry: ModelRegistry, client: Any, make_version: MakeVersion, name: str
) -> None:
    first = make_version(name=name)
    registry.register(first, (), {})
    for number in range(11):  # more than are looked at together
        client.create_model_version(name, source=f"/nowhere/{number}")
    assert registry.register(first, (), {}).version == "1" and registry.resolve(name, "challenger") == "1"


def test_of_a_thousand_versions_those_alone_are_asked_for_that_matter(
    registry: ModelRegistry, make_version: MakeVersion, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that retrains every night has thousands in ten years, and each listing of them takes seconds."""
    for number in ("1", "2", "3"):
        registry.register(make_version(name=name), (), {})
        registry.promote(name, number)
    listed: list[str] = []
    search = registry._store.client.search_model_versions

    def counted(**asked: Any) -> Any:
        found = search(**asked)
        listed.extend(str(entry.version) for entry in found)
        return found

    monkeypatch.setattr(registry._store.client, "search_model_versions", counted)
    registry.promote(name, "1")
    assert registry.rollback(name).version == "3" and registry.summary(name, "champion").version == "3"
    assert registry.forget(name, ("2", "9")) == () and listed == []
    assert registry.rollback(name).version == "1", "of what was forgotten none is gone back to"
    version = make_version(name=name)
    registry.register(version, (), {})
    asked = search(filter_string=f"name = '{name}'")
    assert len(asked) == 3 and listed == ["4", *sorted((str(each.version) for each in asked), key=int, reverse=True)]


def test_a_champion_that_was_put_in_mlflow_by_hand_is_the_one_before_the_next(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    for number in ("1", "2", "3"):
        registry.register(make_version(name=name), (), {})
        registry.promote(name, number)
    registry.point(name, "champion", "1")
    assert registry.promote(name, "2").version == "2" and registry.resolve(name, "previous-champion") == "1"
    registry.point(name, "champion", "3")
    registry.point(name, "previous-champion", None)
    assert registry.aliases(name) == {"champion": "3", "challenger": "3"}


def test_models_are_listed_by_name(registry: ModelRegistry, make_version: MakeVersion, name: str) -> None:
    for letter in ("b", "a"):
        registry.register(make_version(name=f"{letter}-{name}"[:60]), (), {})
    names = [model.name for model in registry.models()]
    assert names == sorted(names) and len(names) >= 2


def test_of_a_version_that_is_deleted_others_keep_their_aliases_and_what_it_is_found_by_goes_last(
    registry: ModelRegistry, make_version: MakeVersion, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        registry.register(make_version(name=name), (), {})
    registry.promote(name, "2")
    gone: list[str] = []
    delete = registry._store.client.delete_model_version_tag

    def noted(model: str, version: str, key: str) -> None:
        gone.append(key)
        delete(model, version, key)

    with monkeypatch.context() as patch:
        patch.setattr(registry._store.client, "delete_model_version_tag", noted)
        assert registry.forget(name, ("1", "77")) == ()
    assert len(gone) > 2 and gone[-1] == labels.RUN_ID
    assert registry.aliases(name) == {"champion": "2", "challenger": "2"}


def test_files_that_cannot_be_deleted_are_told_of_each_version(
    registry: ModelRegistry, make_version: MakeVersion, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the logged model goes, that of the run does not; both are tried."""
    from mlflow.store.artifact import artifact_repository_registry as stores

    for _ in range(2):
        registry.register(make_version(name=name), (), {})
    whole, tried = stores.get_artifact_repository, []

    class Held:
        """A folder that is somebody else's."""

        def delete_artifacts(self) -> None:
            raise PermissionError("not yours")

    def opened(place: str, *given: Any, **named: Any) -> Any:
        tried.append(place)
        return whole(place, *given, **named) if "/models/" in place else Held()

    monkeypatch.setattr(stores, "get_artifact_repository", opened)
    left = registry.forget(name, ("1", "2"))
    assert len(left) == 2 and all(each.startswith("files under ") for each in left)
    assert len([place for place in tried if "/models/" in place]) == 2


def test_an_mlflow_that_fails_is_no_version_that_is_missing(
    registry: ModelRegistry, make_version: MakeVersion, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException

    registry.register(make_version(name=name), (), {})

    def away(*_: object) -> None:
        raise MlflowException("database is locked")

    for call in ("get_model_version", "get_model_version_by_alias", "get_registered_model"):
        monkeypatch.setattr(registry._store.client, call, away)
    for wanted in ("1", "champion"):
        with pytest.raises(UnavailableError):
            registry.get(name, wanted)
    with pytest.raises(UnavailableError):
        registry.aliases(name)


def test_a_version_without_report_or_certificate_has_none(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    plain = registry.register(make_version(name=name), (), {"text": "no report"})
    assert registry.certificate(plain) is None and registry.report(plain) is None
    proven = registry.register(make_version(name=name), (), {}, {CERTIFICATE: b"bounds"})
    assert registry.certificate(proven) == b"bounds"


@pytest.mark.parametrize(("given", "held"), [
    ("postgres://oem@host/mlflow", "postgresql+psycopg://oem@host/mlflow"),
    ("postgresql://oem@host/mlflow", "postgresql+psycopg://oem@host/mlflow"),
    ("postgresql+psycopg://oem@host/mlflow", "postgresql+psycopg://oem@host/mlflow"),
    ("http://postgres://", "http://postgres://"),
])
def test_a_database_is_reached_by_the_driver_that_is_there(given: str, held: str) -> None:
    assert ModelRegistry(given)._store._uri == held


def test_a_folder_of_artifacts_is_the_same_wherever_mlflow_is_called_from(tmp_path: Path) -> None:
    for given, held in (
        (Path("artifacts"), (Path.cwd() / "artifacts").as_uri()), (tmp_path, tmp_path.as_uri()),
        ("s3://bucket/models", "s3://bucket/models"), (None, None),
    ):
        assert ModelRegistry("sqlite://", given)._store.runs._root == held
