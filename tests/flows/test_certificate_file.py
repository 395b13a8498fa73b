"""A certificate file is written only where it proves what the version claims, in the first form that does."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flows import certificates
from models.cuts.carried_proof import CarriedProof
from models.cuts.evidence import EARLIER_RUN
from models.site_ambiguity.ball import MixtureBall
from services.contracts.keys.signed_documents import check_signature
from services.contracts.keys.signing import new_seed_file
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.noise import NoisePromise
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import ReusedCuts, SiteScore
from services.verification.certificate_file import CertificateFile, read_certificate
from services.verification.proof import NotProvenError, RefutedError
from tests.versions import a_version

VERSION: Any = SimpleNamespace(run_id="a" * 32, method="level-bundle", spec=None, asset_type=None)


def proof(*, centred: bool = True) -> Any:
    return SimpleNamespace(plain=lambda: "plain", around_the_centre=lambda: "centred" if centred else None)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file of these proofs, where only ``proven`` forms prove the claims of a version of so many heads."""
    def write(*proofs: Any, proven: tuple[str, ...], heads: int) -> bytes | None:
        def verify(way: tuple[str, ...]) -> None:
            if not set(way) <= set(proven):
                raise NotProvenError(f"{way[0]} proves nothing")

        monkeypatch.setattr(certificates, "verify", verify)
        monkeypatch.setattr(certificates, "_certificate", lambda _, way: way)
        monkeypatch.setattr(certificates, "write_certificate", lambda way: "+".join(way).encode())
        monkeypatch.setattr(certificates, "_as_it_is_proven", certificates._as_it_stands)
        monkeypatch.setattr(certificates, "trained_heads", lambda *_: heads)
        return certificates.certificate_file(VERSION, proofs)[1]

    return write


@pytest.mark.parametrize(("proven", "data"), [
    (("plain", "centred"), b"plain+plain"), (("centred",), b"centred+centred"), (("plain",), b"plain+plain"),
])
def test_the_first_form_that_proves_the_claims_is_written(written: Any, proven: tuple[str, ...], data: bytes) -> None:
    assert written(proof(), proof(), proven=proven, heads=2) == data


def test_what_proves_nothing_leaves_no_file_and_a_line_that_says_why(
    written: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ballast.flows")
    assert written(proof(), proven=(), heads=1) is None
    assert f"run {'a' * 32} leaves no certificate file: centred proves nothing" in caplog.text
    assert written(proof(), proof(centred=False), proven=("centred",), heads=2) is None, "one head has no such form"


@pytest.mark.parametrize("note", ["", "stopped early; "])
def test_a_version_says_that_no_rows_have_the_cuts_of_its_run_and_is_signed_with_it(
    note: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seed = tmp_path / "oem.seed"
    new_seed_file(seed)
    told = replace(a_proof(), norm_weight=np.array([0.05, 100.0]))
    made, data = certificates.carried(version(note=note.removesuffix("; ")), (told,), seed)
    said = "a cut of plant-2 counts the norm more than the radius of the site allows"
    assert (made.refuted, data, made.certificate_sha256) == (said, None, "")
    assert made.note == f"{note}no rows have what plants told in its run: {said}"
    assert f"no rows have what plants told in run {made.run_id}: {said}" in caplog.text
    assert ModelVersion.from_document(made.to_document()).to_document() == made.to_document()
    check_signature(made.to_document(), made.signed_by)


def test_noise_of_the_plan_refutes_nobody() -> None:
    told = replace(a_proof(), norm_weight=np.array([0.05, 100.0]))
    with pytest.raises(RefutedError):
        certificates.certificate_file(version(), (told,))
    noise = NoisePromise(epsilon=1.0, delta=1e-6, confidence=0.9, rounds=3, within=7.0)
    assert certificates.certificate_file(version(noise=noise), (told,))[1] is None


def test_bounds_that_another_argument_proves_refute_nobody(tmp_path: Path) -> None:
    """Such are those of exact solutions, whose cuts alone prove less."""
    seed = tmp_path / "oem.seed"
    new_seed_file(seed)
    told = replace(a_proof(), offset=np.zeros(2), slope=np.zeros((2, 2)), norm_weight=np.zeros(2))
    made, data = certificates.carried(version(), (told,), seed)
    assert (made.refuted, made.note, data, made.certificate_sha256) == ("", "", None, "")
    assert "refuted" not in made.to_document()


def test_without_a_proof_of_each_head_there_is_no_file(written: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ballast.flows")
    for proofs in ((), (proof(),)):
        assert written(*proofs, proven=("plain", "centred"), heads=2) is None
    assert "level-bundle has no cuts that prove its bounds" in caplog.text


SITES = (
    SiteScore(site_id="plant-1", weight=0.25, radius=0.1, label_flip_cost=0.5),
    SiteScore(site_id="plant-2", weight=0.75, radius=0.2),
)


def version(classes: int = 2, spec: TrainingSpec | None = None, **changes: object) -> ModelVersion:
    """A version over two plants, of which the first has a cost of flips of its own."""
    names = ("healthy", "leak", "blocked-inlet")[:classes]
    kind = AssetType(
        name="rig", features=(Feature(name="flow", unit="1", low=0.0, high=1.0),),
        fault_classes=tuple(FaultClass(name=name, severity=place) for place, name in enumerate(names)),
    )
    weights = np.ones((kind.heads("classification"), 2))
    return a_version(kind, weights, sites=SITES, spec=spec or TrainingSpec(label_flip_cost=2.0), **changes)


def a_proof(numbers: int = 2) -> CarriedProof:
    """Two cuts, the first of an earlier run."""
    two = np.array([0.25, 0.75])
    return CarriedProof(
        weights=np.ones(numbers), risks=two, mixture=two, site=np.array([0, 1]), offset=two,
        slope=np.ones((2, numbers)), norm_weight=two, swing=np.zeros((2, 0)), multipliers=two, around=two,
        rounds=np.array([EARLIER_RUN, 3.0]), upper=0.25, lower=0.2498, ball=MixtureBall("linf", 0.3), sites=(),
        centred=None, spare=np.zeros(2, dtype=np.bool_),
    )


@pytest.mark.parametrize(("more", "told"), [(0.0, 0.275), (5e-6, 0.275), (5e-5, None)])
def test_what_is_proven_but_for_last_digits_is_told_as_it_is_proven(
    more: float, told: float | None, tmp_path: Path
) -> None:
    """Flat cuts of .2 and .3 under risks of .21 and .31: a thousandth of the gap of .01 may be missing."""
    seed = tmp_path / "oem.seed"
    new_seed_file(seed)
    flat = replace(
        a_proof(), risks=np.array([0.21, 0.31]), mixture=np.array([0.25, 0.75]), offset=np.array([0.2, 0.3]),
        slope=np.zeros((2, 2)), norm_weight=np.zeros(2), multipliers=np.array([0.25, 0.75]), upper=0.285,
        lower=0.275 + more, ball=MixtureBall(),
    )
    draft = version(objective=0.285, lower_bound=0.275 + more, certified_gap=(0.01 - more) / 0.285)
    made, data = certificates.carried(draft, (flat,), seed)
    assert (data is None) == (told is None)
    assert made.lower_bound == pytest.approx(0.275 + more if told is None else told, abs=1e-12)
    assert made.certified_gap == pytest.approx((0.285 - made.lower_bound) / 0.285, abs=1e-12)
    if data is not None:
        assert read_certificate(data).lower == made.lower_bound == read_certificate(data).heads[0].lower


def said(version: ModelVersion, proof: CarriedProof, monkeypatch: pytest.MonkeyPatch) -> CertificateFile:
    """What the file says, whether or not it proves it."""
    monkeypatch.setattr(certificates, "verify", lambda certificate: None)
    _, data = certificates.certificate_file(version, (proof,))
    assert data is not None
    return read_certificate(data)


def test_the_file_says_of_which_problem_its_bounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(version(), a_proof(), monkeypatch)
    assert found.site_ids == ("plant-1", "plant-2") and found.members == ()
    np.testing.assert_array_equal(found.site_weights, [0.25, 0.75])
    np.testing.assert_array_equal(found.radii, [0.1, 0.2])
    # A plant's own cost where it has one, else the plan's.
    np.testing.assert_array_equal(found.label_flip_costs, [0.5, 2.0])
    assert (found.mixture_norm, found.mixture_radius, found.fit_intercept) == ("linf", 0.3, True)
    assert (found.confidence, found.earlier_run) == (1.0, "")


def test_the_file_names_the_run_of_which_cuts_were_taken_over_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(version(reused=ReusedCuts(run_id="cd" * 16, sites=("plant-1",))), a_proof(), monkeypatch)
    assert found.earlier_run == "cd" * 16 and found.heads[0].earlier.tolist() == [True, False]


def test_the_file_says_with_which_probability_bounds_hold_and_of_which_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    promise = NoisePromise(epsilon=1.0, delta=1e-6, confidence=0.9, rounds=3, within=7.0)
    found = said(version(noise=promise), a_proof(), monkeypatch)
    assert (found.confidence, found.within) == (0.9, 7.0)


def test_intercepts_of_all_classes_as_one_problem_are_weights_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = TrainingSpec(multi_class="crammer_singer")
    assert joint.fit_intercept
    assert not said(version(3, joint), a_proof(6), monkeypatch).fit_intercept
