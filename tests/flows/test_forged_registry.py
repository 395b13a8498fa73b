"""Who can write to the registry, its database and its files, makes document and digest fit: what tells it all the same.

What is served and shown is held to the store; `ballast verify` and `ballast doctor` hold it to the OEM's key as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from sqlalchemy import update

from api.backend.wiring import open_backend
from api.cli.main import main
from api.models.queries import fairness, report, version_detail, version_files
from api.sites.service import registered_digests
from api.system.doctor import of_registry
from flows.publish import promote_if_gates_hold
from services.contracts.errors import ConflictError, UnavailableError
from services.registry.labels import DOCUMENT_SHA256
from services.registry.model_files import DOCUMENT, sha256
from services.round_store.tables.versions import ModelVersionRow
from tests.flows.conftest import RIG, rig_sources

NAME = "held"


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base = tmp_path_factory.mktemp("forged")
    with opening_works(base, new_sqlite(), RIG, rig_sources(base)) as opened:
        plan = opened.plan(NAME)
        for _ in range(2):
            run, _, version = opened.train(plan)
        promote_if_gates_hold(opened.context, run, version)
        yield opened


def document_of(works: Any, number: str) -> Path:
    entry = works.context.registry._store.entry(NAME, number)
    return Path(unquote(urlsplit(entry.source).path)) / "artifacts" / DOCUMENT


def written(works: Any, number: str, text: str) -> None:
    """The document of a version as somebody writes it who has the registry, with its digest."""
    document_of(works, number).write_text(text)
    works.context.registry._store.client.set_model_version_tag(NAME, number, DOCUMENT_SHA256, sha256(text))


def kept_none(works: Any) -> None:
    with works.context.store.engine.begin() as connection:
        connection.execute(update(ModelVersionRow).values(signed_sha256=None))


def found(works: Any) -> tuple[str, str]:
    with open_backend(works.context.settings) as backend:
        ((state, said),) = [(each.state, each.said) for each in of_registry(backend)]
    return state, said


def changed(**fields: Any) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | fields)


FORGED = [
    (changed(f1=0.99), "the signature does not hold"),
    (changed(f1=0.99, signature="", signed_by=""), "the version is not signed"),
    (changed(f1=0.99, signed_by="U" + "A" * 55), "the version is signed by UAAAA"),
]


@pytest.mark.parametrize("forged", [forged for forged, _ in FORGED])
def test_a_version_that_is_not_what_was_signed_is_neither_served_nor_shown(
    works: Any, forged: Callable[[str], str]
) -> None:
    """The store has the digest of what the OEM signed: without its key on the host, and whoever signed the forgery."""
    settings, why = works.context.settings, f"version 2 of model {NAME} in the registry is not what the OEM signed"
    honest = document_of(works, "2").read_text()
    with open_backend(settings) as backend:
        assert version_detail(backend, NAME, "2").f1 != 0.99 and report(backend, NAME, "2").version == "2"
    try:
        written(works, "2", forged(honest))
        with open_backend(settings) as backend:
            for shown in (version_detail, report, fairness, version_files):
                with pytest.raises(ConflictError, match=why):
                    shown(backend, NAME, "2")
            with pytest.raises(ConflictError, match=why):
                backend.predictors.get(NAME, "champion")
            with pytest.raises(ConflictError, match=why):
                backend.versions.get(NAME, "2")
            with pytest.raises(UnavailableError, match=why):
                registered_digests(backend)  # else the statement of a stolen key would vouch for it
    finally:
        written(works, "2", honest)


@pytest.mark.parametrize(("forged", "why"), FORGED)
def test_a_version_that_was_changed_with_its_digest_is_told(
    works: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forged: Callable[[str], str],
    why: str,
) -> None:
    """Of a version from before the store kept digests; unsigned, it was once verified on the very host with the key."""
    settings = works.context.settings
    kept_none(works)
    monkeypatch.setenv("BALLAST_HOME", str(settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", settings.database)
    assert found(works) == ("ok", "agrees with the store") and main(["verify", NAME]) == 0
    honest = document_of(works, "2").read_text()
    try:
        written(works, "2", forged(honest))
        assert works.context.registry.get(NAME, "champion").f1 == 0.99, "the registry's own digest holds"
        state, said = found(works)
        assert state == "fail" and said.startswith("its champion is not what was registered: ") and why in said
        capsys.readouterr()
        assert main(["verify", NAME]) == 1 and why in capsys.readouterr().err
    finally:
        written(works, "2", honest)
    assert found(works)[0] == "ok"


def test_an_earlier_version_in_the_place_of_the_champion_is_told_and_not_served(
    works: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The signature holds, for it does not cover the number that the registry gave."""
    settings = works.context.settings
    monkeypatch.setenv("BALLAST_HOME", str(settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", settings.database)
    with open_backend(settings) as backend:
        assert backend.checked.get(NAME, "2").version == "2"
    honest = document_of(works, "2").read_text()
    try:
        written(works, "2", document_of(works, "1").read_text())
        first, second = (works.context.store.model_versions.get(NAME, number).run_id for number in ("1", "2"))
        why = f"version 2 of model {NAME} in the registry is of run {first}, and run {second} made it"
        state, said = found(works)
        assert state == "fail" and said.startswith(f"its champion is not what was registered: {why}")
        with open_backend(settings) as backend, pytest.raises(ConflictError, match=why):
            backend.checked.get(NAME, "2")
        capsys.readouterr()
        assert main(["verify", f"{NAME}:2"]) == 1 and why in capsys.readouterr().err
    finally:
        written(works, "2", honest)
