"""Certificates of runs on sums: what is proven of cohorts, and that it is said what is not."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from models.cohorts.noise import NoisePlan
from models.problem import REACH as REACH_OF_SUMS
from models.problem import RobustSpec, SiteProblem
from models.simulation.noisy_rounds import train_with_noise
from services.contracts.errors import InvalidInputError
from services.verification.certificate_file import CertificateFile, Head, read_certificate, write_certificate
from services.verification.charges import REACH
from services.verification.proof import NotProvenError, belongs, verify
from services.verification.version import proof_lines
from tests.services.verification.drawn import RUN, trained_certificate
from tests.services.verification.test_proof import _edited

PROBLEMS: dict[str, dict[str, Any]] = {
    "one cohort": {"cohort_size": 4, "method": "cohort-bundle"},
    "two cohorts": {"cohort_size": 3, "method": "cohort-bundle", "n_sites": 7},
    "a plant is away": {"cohort_size": 3, "method": "cohort-bundle", "n_sites": 7, "away": "plant-2", "max_rounds": 12},
    "box": {"cohort_size": 4, "method": "cohort-bundle", "box": True, "n_rows": 24, "max_rounds": 8},
    "no prox cuts": {"cohort_size": 4, "method": "level-bundle-plain"},
}
EDITS = 150


def _known() -> CertificateFile:
    """Two cohorts, of four and three plants."""
    return trained_certificate(**PROBLEMS["two cohorts"])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_claims_of_a_run_on_sums_are_proven(name: str) -> None:
    certificate = trained_certificate(**PROBLEMS[name])
    read = read_certificate(write_certificate(certificate))
    assert read.members == certificate.members and len(read.plants) == PROBLEMS[name].get("n_sites", 4)
    proof = verify(read)
    assert proof.upper == pytest.approx(certificate.upper, rel=1e-9)
    assert proof.lower == pytest.approx(certificate.lower, rel=1e-9)
    said = " ".join((*proof.checked, *proof.not_checked))
    assert f"{len(read.members)} cohort" in said and "at most 4096" in said
    assert f"sums over {len(read.plants)} plants" in said
    assert "each signs its masked words" in said and "each plant can check its own" not in said
    assert REACH == REACH_OF_SUMS


def test_edits_that_break_a_bound_of_sums_are_refused() -> None:
    random, certificate = np.random.default_rng(3), _known()
    for number in range(EDITS):
        name, edited = _edited_cohorts(certificate, random)
        with pytest.raises(NotProvenError):
            verify(edited)
            pytest.fail(f"{number}: {name} passed")


def _edited_cohorts(certificate: CertificateFile, random: Any) -> tuple[str, CertificateFile]:
    """As of single plants, but for the weights of the sites, which are those of four plants there."""
    while True:
        name, edited = _edited(replace(certificate, site_weights=np.full(4, 0.25)), random)
        if name != "site_weights":
            return name, replace(edited, site_weights=certificate.site_weights)


def test_bounds_from_noisy_sums_are_said_to_hold_in_probability() -> None:
    certificate = _noisy()
    read = read_certificate(write_certificate(certificate))
    assert (read.confidence, read.within) == (0.9, 30.0)
    said = proof_lines(verify(read))
    assert "in probability: the sums had noise: both bounds hold with probability 0.9" in said[2]
    assert "at most 30" in said[2] and not any("in probability" in line for line in proof_lines(verify(_known())))
    document = _document(certificate)
    noise = {"confidence": 0.9, "within": 30.0}
    belongs(certificate, {**document, "noise": noise})
    for other in (None, {**noise, "confidence": 0.99}, {**noise, "within": 40.0}):
        with pytest.raises(NotProvenError, match="its noise differ"):
            belongs(certificate, {**document, "noise": other})
    with pytest.raises(NotProvenError, match="its noise differ"):
        belongs(_known(), {**_document(_known()), "noise": noise})
    with pytest.raises(InvalidInputError, match="with a probability"):
        read_certificate(write_certificate(replace(certificate, confidence=0.0)))


def _noisy() -> CertificateFile:
    draw = np.random.default_rng(0)
    plane, spec, sites = draw.normal(size=3), RobustSpec(0.01, 1.0, "l2", None, True), {}
    for g in range(3):
        features = draw.uniform(size=(3000, 3))
        labels = np.sign((features - 0.5) @ plane + 0.1 * draw.normal(size=3000))
        sites[f"plant-{g}"] = SiteProblem(features, labels, spec)
    plan, cohorts = NoisePlan(50.0, 1e-5, 0.9, 20, 30.0), {"cohort-1": tuple(sites)}
    found = train_with_noise(sites, cohorts, plan, random.Random(0).randrange)
    bounds, proof = found.certificate, found.proof
    assert proof is not None and bounds.gap < 0.5
    head = replace(_known().heads[0], **{
        field.name: getattr(proof, field.name) for field in fields(_known().heads[0]) if hasattr(proof, field.name)
    })
    return replace(
        _known(), site_ids=("cohort-1",), members=(tuple(sites),), site_weights=np.ones(1), radii=np.full(1, 0.01),
        label_flip_costs=np.ones(1), heads=(head,), upper=bounds.upper, lower=bounds.lower, gap=bounds.gap,
        confidence=plan.confidence, within=plan.within,
    )


def test_weights_beyond_the_reach_of_sums_prove_nothing() -> None:
    (head,) = _known().heads
    far = replace(head, weights=head.weights * (1.01 * REACH / np.abs(head.weights).max()))
    with pytest.raises(NotProvenError, match="above 4096"):
        verify(replace(_known(), heads=(far,)))


def balanced(last_digit: float) -> CertificateFile:
    """Three cuts of a cohort with as many rows of either class, flat in the intercept but for what rounding left."""
    slope = np.array([
        [-0.16420891666666670, -0.05443583333333324, 0.0], [-0.09224499999999991, -0.02956416666666661, 0.0],
        [-0.03756150000000002, -0.00726008333333339, -last_digit],
    ])
    head = Head(
        weights=np.array([5.082393646240234, 1.47052001953125, -3.425128936767578]),
        risks=np.array([0.5629643594265872]), mixture=np.ones(1), site=np.zeros(3, dtype=np.int64),
        offset=np.array([1.0, 0.76666666666666, 0.49999999999389]), slope=slope,
        norm_weight=np.full(3, 0.04999999999999893), swing=np.zeros((3, 0)),
        multipliers=np.array([0.0, 0.20180775553668046, 0.7981922444633195]), around=np.zeros(3),
        upper=0.5629643594265872, lower=0.5538154014, earlier=np.zeros(3, dtype=np.bool_),
    )
    return CertificateFile(
        run_id=RUN, site_ids=("cohort-1",), members=(("plant-1", "plant-2", "plant-3"),), site_weights=np.ones(1),
        radii=np.array([0.05]), label_flip_costs=np.ones(1), lipschitz=1.0, transport_norm="l2", fit_intercept=True,
        mixture_norm="l2", mixture_radius=0.0, heads=(head,), upper=head.upper, lower=head.lower,
        gap=1.0 - head.lower / head.upper,
    )


def test_a_last_digit_in_an_intercept_that_no_cut_bounds_costs_next_to_nothing_on_sums() -> None:
    """All weights within the reach are spoken of, the intercept among them; of single answers that is said."""
    proof, exact = verify(balanced(2.0**-52)), verify(balanced(0.0))
    assert 0.0 <= exact.lower - proof.lower <= 2.0**-52 * REACH
    with pytest.raises(NotProvenError, match="lower bound"):
        verify(balanced(2e-7))
    near, all_weights = (verify(replace(balanced(left), members=())) for left in (2.0**-52, 0.0))
    assert near.lower == proof.lower and any("for weights of at most 4096" in line for line in near.checked)
    assert not any("4096" in line for line in all_weights.checked)


def _document(certificate: CertificateFile) -> dict[str, Any]:
    (head,) = certificate.heads
    scalars = zip(certificate.members, certificate.site_weights, certificate.radii, strict=True)
    sites = [
        {"site_id": plant, "weight": weight / len(members), "radius": radius * (0.5 + k / (len(members) - 1))}
        for members, weight, radius in scalars for k, plant in enumerate(members)
    ]
    return {
        "run_id": RUN, "sites": sites, "objective": certificate.upper, "lower_bound": certificate.lower,
        "certified_gap": certificate.gap, "weights": [head.weights.tolist()],
        "spec": {"label_flip_cost": 1.0, "transport_norm": "l2"},
    }


def test_a_cohorts_scalars_are_those_of_its_plants() -> None:
    document = _document(_known())
    belongs(_known(), document)
    first, *others = document["sites"]
    for change, words in (
        ({"weight": first["weight"] * 1.01}, "sites' weights"), ({"radius": first["radius"] * 1.01}, "sites' radii"),
        ({"label_flip_cost": 1.01}, "costs of a flip"), ({"site_id": "plant-9"}, "its sites differ"),
    ):
        with pytest.raises(NotProvenError, match=words):
            belongs(_known(), {**document, "sites": [{**first, **change}, *others]})
    moved = tuple(_known().members[1][:1] + each if c == 0 else each[1:] for c, each in
                  enumerate(_known().members))
    with pytest.raises(NotProvenError, match="differ"):
        belongs(replace(_known(), members=moved), document)


@pytest.mark.parametrize("members", [(("plant-1",),), ((), ("plant-1",)), (("plant-1", "plant-2"), ("plant-2",))])
def test_cohorts_that_are_none_are_refused(members: Any) -> None:
    with pytest.raises(InvalidInputError, match="in one cohort"):
        read_certificate(write_certificate(replace(_known(), members=members)))
