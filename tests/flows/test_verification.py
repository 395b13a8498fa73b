"""A version proves itself: from the registry, from files, and at the plant on its own rows."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from api.app import create_app
from api.backend.wiring import open_backend
from api.cli.main import main
from api.system.doctor import of_registry
from flows.publish import promote_if_gates_hold
from services.contracts.access.identity import Role
from services.contracts.keys.signed_documents import signature_of
from services.contracts.keys.signing import public_key
from services.contracts.wire.codec import digest
from services.identity.tokens import issue
from services.site_agent.cli import main as site_main
from services.site_agent.own_use import verify_model
from services.site_agent.own_use.own_rows import OwnRows
from services.site_agent.settings import SiteSettings
from services.verification.certificate_file import read_certificate
from services.verification.proof import NotProvenError
from tests.flows.conftest import RIG, rig_sources


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base = tmp_path_factory.mktemp("verified")
    with opening_works(base, new_sqlite(), RIG, rig_sources(base)) as opened:
        yield opened


PLANS: dict[str, dict[str, Any]] = {
    "plain": {},
    "boxed": {"spec": {"support": "sensor_ranges", "transport_norm": "linf"}},
    "mixed": {"mixture": {"norm": "l2", "radius": 0.2}},
    "worst": {"method": "afl"},
    "fair": {"method": "relative-fairness", "max_rounds": 10},
    "any": {"method": "drfa", "max_rounds": 20},
    "any-in": {"method": "drflm", "max_rounds": 20, "mixture": {"norm": "l2", "radius": 0.2}},
    "worst-plant": {"method": "drfa-exact"},
    "summed": {"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}},
    "bent": {"spec": {"lift": {"kind": "spline", "segments": 4}}},
    "together": {"spec": {"lift": {"kind": "products", "features": ["flow", "pressure"], "segments": 3}}},
    "split": {"method": "fdr-admm", "parameters": {"rho": 0.1}, "max_rounds": 60},
    "soft": {
        "spec": {"loss": "cross_entropy"}, "method": "fedavg", "parameters": {"step_size": 1.0}, "max_rounds": 30,
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_a_registered_version_is_proven_from_its_files(
    works: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, version = works.train(works.plan(name, **PLANS[name]))
    assert version.mixture.is_every == (name in ("any", "worst-plant"))
    _home(works, monkeypatch)
    assert main(["verify", f"{name}:{version.version}", "--save", str(tmp_path / "files")]) == 0
    key = public_key(works.context.settings.nats_seed)
    said = capsys.readouterr().out
    told = re.search(r"these weights is at most (\S+)\n", said)
    assert told is not None and (float(told[1]) == pytest.approx(version.objective, rel=1e-8)) == (name != "fair")
    other = f"minimised (relative fairness of the worst-case risks, of these weights {version.objective:.9g})"
    assert (other in said) == (name == "fair") == ("not checked: what the version's method minimised" in said)
    assert f"its certificate file, by {key}" in said
    assert main(["verify", "--file", str(tmp_path / "files"), "--oem-key", key]) == 0
    assert main(["verify", "--file", str(tmp_path / "files" / "certificate.npz")]) == 0
    assert "not checked: of which version the certificate is" in capsys.readouterr().out

    site = _site(works, tmp_path, "plant-2", key)
    assert site_main(["verify", str(tmp_path / "files" / "model.json"), "--config", str(site)]) == 0
    said = capsys.readouterr().out
    # No version of sums has a plant's own, and a softmax regression has no ball.
    assert ("\nchecked: the own worst-case risk" in said) == (name not in ("summed", "soft"))
    assert ("not checked: the own risk; the version was trained without a ball" in said) == (name == "soft")
    assert ("checked: the own cuts lie below the own risk at 10 weights" in said) == (
        name not in ("worst", "fair", "any", "any-in", "worst-plant", "summed", "soft"))
    assert ("1 cohort, sums over 3 plants" in said) == (name == "summed")
    document = json.loads((tmp_path / "files" / "model.json").read_text())
    for changed in (document["weights"][::-1], [[*row[:-1], row[-1] + 1e-6] for row in document["weights"]]):
        (tmp_path / "files" / "model.json").write_text(json.dumps({**document, "weights": changed}))
        other = changed != document["weights"]
        assert main(["verify", "--file", str(tmp_path / "files")]) == int(other)
        assert ("its weights differ" in capsys.readouterr().err) == other


def test_what_does_not_belong_together_is_refused(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "other"):
        works.train(works.plan(name, **({} if name == "one" else {"mixture": {"norm": "l1", "radius": 0.4}})))
        _home(works, monkeypatch)
        assert main(["verify", f"{name}:1", "--save", str(tmp_path / name)]) == 0
    capsys.readouterr()
    key = public_key(works.context.settings.nats_seed)
    (tmp_path / "one" / "certificate.npz").write_bytes((tmp_path / "other" / "certificate.npz").read_bytes())
    assert main(["verify", "--file", str(tmp_path / "one"), "--oem-key", key]) == 1
    assert "its SHA-256 is another" in capsys.readouterr().err

    path = tmp_path / "other" / "model.json"
    document = json.loads(path.read_text())
    for change, words in (
        ({"lower_bound": document["lower_bound"] * 1.0001}, "its lower bound differ"),
        ({"weights": (np.array(document["weights"]) * 1.01).tolist()}, "its weights differ"),
        ({"sites": [{**site, "radius": 0.5} for site in document["sites"]]}, "its sites' radii differ"),
    ):
        path.write_text(json.dumps({**document, **change}))
        assert main(["verify", "--file", str(tmp_path / "other")]) == 1
        assert words in capsys.readouterr().err
        assert main(["verify", "--file", str(tmp_path / "other"), "--oem-key", key]) == 1
        assert "changed after the OEM signed it" in capsys.readouterr().err
    path.write_text(json.dumps({**document, "certificate_sha256": ""}))
    assert main(["verify", "--file", str(tmp_path / "other")]) == 2
    said = capsys.readouterr().err
    assert "carries no certificate file" in said and said.count("\n") == 1


def test_a_plant_whose_rows_have_another_risk_is_told(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works.train(works.plan("held"))
    _home(works, monkeypatch)
    assert main(["verify", "held:1", "--save", str(tmp_path / "files")]) == 0
    capsys.readouterr()
    site = _site(works, tmp_path, "plant-2", public_key(works.context.settings.nats_seed), rows_of="plant-3")
    assert site_main(["verify", str(tmp_path / "files" / "model.json"), "--config", str(site)]) == 1
    assert "worst-case risk of plant-2 is" in capsys.readouterr().err


def test_a_cut_that_the_plants_rows_do_not_have_is_told(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, version = works.train(works.plan("cut"))
    _home(works, monkeypatch)
    assert main(["verify", "cut:1", "--save", str(tmp_path)]) == 0
    certificate = read_certificate((tmp_path / "certificate.npz").read_bytes())
    path = _site(works, tmp_path, "plant-2", public_key(works.context.settings.nats_seed))
    settings = SiteSettings.from_toml(path)
    site = next(each for each in version.sites if each.site_id == "plant-2")
    rows = OwnRows(settings, version.asset_type, version.spec.loss.task)
    assert "checked" in verify_model._own_cuts(certificate, version, site, rows)
    (head,) = certificate.heads
    own = head.site == certificate.site_ids.index("plant-2")
    for site_id, holds in (("plant-2", False), ("plant-3", True)):  # the upper bound is proven of the told risks
        lower = np.where(np.array(certificate.site_ids) == site_id, 0.99, 1.0)
        edited = replace(certificate, heads=(replace(head, risks=head.risks * lower),))
        if holds:
            verify_model._own_cuts(edited, version, site, rows)
            continue
        with pytest.raises(NotProvenError, match="is said to have answered a risk of"):
            verify_model._own_cuts(edited, version, site, rows)
    for raised, holds in ((np.where(own, 0.02, 0.0), False), (np.where(own, 0.0, 0.02), True)):
        edited = replace(certificate, heads=(replace(head, offset=head.offset + raised),))
        if holds:
            verify_model._own_cuts(edited, version, site, rows)
            continue
        with pytest.raises(NotProvenError, match="said to have answered lies above its risk"):
            verify_model._own_cuts(edited, version, site, rows)


def test_a_method_whose_bounds_are_of_something_else_carries_no_file(
    works: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, version = works.train(works.plan("priced", method="wafl", max_rounds=20))
    assert version.signature and not version.certificate_sha256
    _home(works, monkeypatch)
    assert main(["verify", "priced:1"]) == 2
    assert "its method leaves no cuts" in capsys.readouterr().err


def test_versions_of_former_keys_stay_verifiable_and_those_of_a_stolen_one_only_if_they_stood(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works.train(works.plan("aged"))
    _home(works, monkeypatch)
    seed, stolen = works.context.settings.nats_seed, tmp_path / "stolen.nk"
    keys = [public_key(seed)]
    for change in (["--overlap", "1h"], ["--stolen"]):
        stolen.write_bytes(seed.read_bytes())
        assert main(["site", "rotate-coordinator-key", *change]) == 0
        keys.append(public_key(seed))
        capsys.readouterr()
        assert main(["verify", "aged:1", "--save", str(tmp_path / f"{len(keys)}")]) == 0
        said = capsys.readouterr().out
        assert f"by {keys[0]}, which {keys[-1]} vouches for" in said
        assert "not checked: the version's number, which the registry gave after the OEM had signed" in said
    # After the ordinary change the plants' key may be either; after the theft only the last one.
    for folder, anchor, held in (("2", 0, 0), ("2", 1, 0), ("3", 2, 0), ("3", 1, 1), ("3", 0, 1)):
        assert main(["verify", "--file", str(tmp_path / folder), "--oem-key", keys[anchor]]) == held
        refused = capsys.readouterr()
        assert ("revoked as stolen" in refused.err) == bool(held)
        site = _site(works, tmp_path, "plant-2", keys[anchor])
        assert site_main(["verify", str(tmp_path / folder / "model.json"), "--config", str(site)]) == held
        capsys.readouterr()

    path = tmp_path / "3" / "model.json"
    forged = {**json.loads(path.read_text()), "f1": 1.0, "signed_by": public_key(stolen)}
    path.write_text(json.dumps({**forged, "signature": signature_of(forged, stolen)}))
    assert main(["verify", "--file", str(tmp_path / "3"), "--oem-key", keys[2]]) == 1
    assert "not among those that stood" in capsys.readouterr().err


def test_operators_fetch_what_a_plant_checks(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works.train(works.plan("fetched"))
    works.train(works.plan("bare", method="wafl", max_rounds=3))
    _home(works, monkeypatch)
    made = issue("reader", Role.OPERATOR, datetime.now(UTC))
    works.context.store.tokens.add(made.stored)
    answers = asyncio.run(_fetched(create_app(works.context.settings), made.text, (
        "fetched/versions/1/certificate", "fetched/versions/challenger/certificate.zip",
        "bare/versions/1/certificate", "bare/versions/1/certificate.zip",
    )))
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200]
    alone, packed, _, empty = (answer.content for answer in answers)
    version = works.context.registry.get("fetched", "1")
    noted = works.context.store.audit.list_events(action="model.certificate")
    assert [each.after["sha256"] for each in reversed(noted)] == [digest(data) for data in (alone, packed, empty)]
    assert digest(alone) == version.certificate_sha256
    key = public_key(works.context.settings.nats_seed)
    for data, held in ((packed, 0), (empty, 2), (packed[:-30], 1), (alone, 1)):
        (tmp_path / "fetched.zip").write_bytes(data)
        assert main(["verify", "--file", str(tmp_path / "fetched.zip"), "--oem-key", key]) == held
    capsys.readouterr()
    (tmp_path / "fetched.zip").write_bytes(packed)
    site = _site(works, tmp_path, "plant-2", key)
    assert site_main(["verify", str(tmp_path / "fetched.zip"), "--config", str(site)]) == 0
    assert "checked: the own worst-case risk" in capsys.readouterr().out


async def _fetched(app: FastAPI, token: str, paths: tuple[str, ...]) -> list[Response]:
    headers, transport = {"Authorization": f"Bearer {token}"}, ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://b", headers=headers) as client,
    ):
        return [await client.get(f"/v1/models/{path}") for path in paths]


def _home(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands on the same home and database."""
    settings = works.context.settings
    monkeypatch.setenv("BALLAST_HOME", str(settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", settings.database)


def _site(works: Any, folder: Path, site_id: str, key: str, rows_of: str = "") -> Path:
    path = folder / "site.toml"
    path.write_text(
        f'site_id = "{site_id}"\nservers = ["nats://nowhere:1"]\noem_key = "{key}"\n'
        f'[data]\nkind = "csv"\npath = "{works.sources[rows_of or site_id].path}"\n'
    )
    return path


def test_doctor_misses_the_file_that_a_champions_bounds_rest_on(works: Any) -> None:
    run, _, version = works.train(works.plan("looked-after"))
    promote_if_gates_hold(works.context, run, version)
    (file,) = [each for each in works.context.settings.home.rglob("certificate.npz")
               if digest(each.read_bytes()) == version.certificate_sha256]

    def found() -> tuple[str, str]:
        with open_backend(works.context.settings) as backend:
            ((state, said),) = [
                (each.state, each.said) for each in of_registry(backend) if each.check == "registry looked-after"
            ]
        return state, said

    assert found() == ("ok", "agrees with the store")
    data = file.read_bytes()
    for left, said in ((data[:-1], "is another file than was registered"), (None, "is gone")):
        file.unlink() if left is None else file.write_bytes(left)
        assert found() == ("fail", f"its champion answers, and its bounds cannot be checked: certificate.npz {said}")
    file.mkdir()
    state, said = found()
    assert state == "fail" and "could not read the certificate" in said, "nor one that cannot be read"
    file.rmdir()
    file.write_bytes(data)
    assert found()[0] == "ok"
