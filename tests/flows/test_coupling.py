"""Coupled planes from a plan with "auto" to a diagnosis, proven by their files and at the plant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.cli.main import main
from api.console.views.words import certificate_words
from models.multiclass import predict_class
from models.tuning.coupling import coupled_planes
from services.contracts.keys.signing import public_key
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.predictor.predictor import Predictor
from services.registry.descriptions import version_description
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.site_agent.cli import main as site_main
from services.site_agent.settings import CsvSource
from services.verification.certificate_file import read_certificate
from tests.flows.test_all_classes import GRADES, SITES, WEAR, site_file, write_grades


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base, sources = tmp_path_factory.mktemp("coupled"), {}
    for number, site in enumerate(SITES):
        write_grades(base / f"{site}.csv", number, 80 + 6 * number)
        sources[site] = CsvSource(kind="csv", path=base / f"{site}.csv")
    with opening_works(base, new_sqlite(), WEAR, sources) as opened:
        yield opened


@pytest.mark.parametrize("reveal", ["each site", "sums"])
def test_a_version_of_coupled_planes_is_proven_and_says_what_is_not(
    works: Any, reveal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"coupled-{reveal.split()[0]}"
    plan = works.plan(name, tuning="auto", reveal=reveal, gap=3e-2, max_rounds=15)
    run, trained, version = works.train(plan)
    assert version.coupling is not None and version.coupling == trained.coupling
    assert version.coupling.at_least <= version.coupling.objective < version.coupling.before
    assert version.coupling.words in version.note and version.f1 is not None and version.f1 > 0.8
    page = report_page(model_report(version, run, works.context.store.runs.get_rounds(run.run_id)))
    assert "objective and bounds are of the planes before it" in page
    assert "that of the planes before their coupling is at most" in page
    assert "before its planes were coupled this one had" in " ".join(certificate_words(version))
    assert "(of its planes before their coupling)" in version_description(version)
    document = version.to_document()
    again = ModelVersion.from_document(json.loads(json.dumps(document)))
    assert again.to_document() == document and again.coupling == version.coupling
    test = works.dataset("plant-1").test
    samples = [{"heat": 10.0 * row[0], "noise": 10.0 * row[1]} for row in test.features.tolist()]
    diagnosed = [GRADES.index(each.fault_class) for each in Predictor(version).diagnose(samples)]
    lift = version.spec.lift
    rows = test.features if lift is None else lift.draw(2).apply(test.features)
    assert diagnosed == predict_class(version.weights, rows).tolist() and "slight" in c99_header(version)

    monkeypatch.setenv("BALLAST_HOME", str(works.context.settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", works.context.settings.database)
    files, key = tmp_path / "files", public_key(works.context.settings.nats_seed)
    assert main(["verify", f"{name}:{version.version}", "--save", str(files)]) == 0
    assert main(["verify", "--file", str(files), "--oem-key", key]) == 0
    said = capsys.readouterr().out
    assert "the risk of the weights before their coupling is at most" in said
    assert "the version's planes are those of the certificate, coupled as the version says" in said
    heads = read_certificate((files / "certificate.npz").read_bytes()).heads
    assert version.weights == pytest.approx(
        coupled_planes(np.stack([head.weights for head in heads]), version.coupling.array)
    )
    document = json.loads((files / "model.json").read_text())
    for change in (
        {"coupling": {**document["coupling"], "offsets": [0.0, 0.0, 0.0]}}, {"coupling": None},
        {"weights": [*document["weights"][1:], document["weights"][0]]},
    ):
        (files / "model.json").write_text(json.dumps({**document, **change}))
        assert main(["verify", "--file", str(files)]) == 1 and "its weights differ" in capsys.readouterr().err
    for matrix in ([1.0, 0.0, 0.0], [[1.0, 0.0]], "none"):
        changed = {**document["coupling"], "matrix": matrix}
        (files / "model.json").write_text(json.dumps({**document, "coupling": changed}))
        assert main(["verify", "--file", str(files)]) == 1 and "Traceback" not in capsys.readouterr().err
    (files / "model.json").write_text(json.dumps(document))
    assert site_main(["verify", str(files / "model.json"), "--config", str(site_file(works, tmp_path, key))]) == 0
    said = capsys.readouterr().out
    assert ("checked: the own worst-case risk" in said) == (reveal == "each site")


def test_a_version_without_a_coupling_is_the_document_that_was_signed(works: Any) -> None:
    _, _, version = works.train(works.plan("uncoupled", max_rounds=2, spec={"loss": "logistic"}), registered=False)
    document = version.to_document()
    assert version.coupling is None and "coupling" not in document
    assert ModelVersion.from_document(document).to_document() == document
