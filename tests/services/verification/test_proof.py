"""What a run claims follows from its certificate; what an edit makes of it does not."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.format import write_array_header_1_0

from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise
from models.simulation.federation import FIXED
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from services.contracts.errors import InvalidInputError
from services.verification.bounds import floors, lower_bound, upper_bound
from services.verification.certificate_file import CertificateFile, Head, read_certificate, write_certificate
from services.verification.proof import NotProvenError, verify
from tests.services.verification.drawn import trained_certificate

EDITS = 3_000
PROBLEMS: dict[str, dict[str, Any]] = {
    "l1": {"norm": "l1"},
    "l2": {},
    "linf, no intercept": {"norm": "linf", "fit_intercept": False},
    "tiny ball": {"radius": 1e-7},
    "no ball": {"radius": 0.0},
    "no ball, no intercept": {"radius": 0.0, "fit_intercept": False},
    "box": {"box": True},
    "box, linf, no intercept": {"box": True, "norm": "linf", "fit_intercept": False},
    "worst mixture l1": {"ball": MixtureBall("l1", 0.3)},
    "worst mixture l2": {"ball": MixtureBall("l2", 0.3)},
    "worst mixture linf": {"ball": MixtureBall("linf", 0.2)},
    "worst plant": {"ball": MixtureBall("l1", 2.0)},
    "a plant is away": {"away": "plant-2"},
    "regression": {"loss": "huber"},
    "another method": {"method": "fdr-admm"},
    "tight": {"gap": 1e-8},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_claims_of_a_run_are_proven(name: str) -> None:
    certificate = trained_certificate(**PROBLEMS[name])
    assert certificate.gap <= 1e-3
    data = write_certificate(certificate)
    assert write_certificate(read_certificate(data)) == data
    proof = verify(read_certificate(data))
    assert proof.upper == pytest.approx(certificate.upper, rel=1e-9)
    # The proof is made anew from the cuts that count, and may prove a little more than was claimed.
    assert certificate.lower * (1.0 - 1e-9) <= proof.lower <= certificate.lower * (1.0 + 1e-6)
    assert ("plant-2" in " ".join(proof.not_checked)) == (name == "a plant is away")


@given(
    seed=st.integers(0, 2**32 - 1), norm=st.sampled_from(["l1", "l2", "linf"]),
    radius=st.sampled_from([1e-3, 0.05, 0.3, 0.7, 1.5, 2.0]), n_sites=st.integers(1, 6),
)
def test_the_worst_mixture_is_bounded_from_above_and_tightly(seed: int, norm: Any, radius: float, n_sites: int) -> None:
    random = np.random.default_rng(seed)
    risks, weights = random.exponential(size=n_sites), random.dirichlet(np.ones(n_sites))
    true = worst_mixture(risks, weights, MixtureBall(norm, radius)).value
    certificate = replace(_known(), site_weights=weights, mixture_norm=norm, mixture_radius=radius)
    found = upper_bound(certificate, risks)
    assert true * (1 - 1e-12) <= found <= true + 1e-9


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), problem=st.sampled_from(["l1", "l2", "no ball", "box", "worst mixture l2"]))
def test_no_multipliers_prove_more_than_the_least_of_the_cuts(seed: int, problem: str) -> None:
    certificate, random = trained_certificate(**PROBLEMS[problem]), np.random.default_rng(seed)
    (head,) = certificate.heads
    noise = 10.0 ** random.uniform(-16, 1)
    moved = np.maximum(head.multipliers * (1 + noise * random.normal(size=head.multipliers.shape)), 0.0)
    mixture = head.mixture
    if certificate.mixture_radius and random.random() < 0.5:
        mixture = certificate.site_weights
    edited = replace(head, multipliers=moved, mixture=mixture, around=moved if random.random() < 0.5 else head.around)
    least = _least(certificate, head)
    upper = upper_bound(certificate, head.risks)
    assert lower_bound(certificate, edited, upper) <= least * (1 + 1e-9)


def _least(certificate: CertificateFile, head: Head) -> float:
    """Least of the cut model, from above: its value at its minimiser."""
    model = CutModel(
        certificate.site_weights, floors(certificate, head), head.site, head.offset, head.slope, head.norm_weight,
        certificate.transport_norm, head.weights.size - int(certificate.fit_intercept),
        MixtureBall(certificate.mixture_norm, certificate.mixture_radius),
        swing=head.swing if head.swing.size else None,
    )
    return model.value(minimise(model, head.weights).point)


def _known(ball: MixtureBall = FIXED) -> CertificateFile:
    """A certificate of the demo's size: four plants, some ten features."""
    return trained_certificate(n_features=10, n_rows=120, gap=1e-3, ball=ball)


Edit = Callable[[Head, Any], Head]


def _changed(head: Head, name: str, place: Any, value: float) -> Head:
    array = getattr(head, name).copy()
    array[place] = value
    return replace(head, **{name: array})


def _used(head: Head, random: Any) -> int:
    """A cut that carries some of the bound."""
    return int(random.choice(np.flatnonzero(head.multipliers > 1e-3)))


def _size(random: Any) -> float:
    return float(10.0 ** random.uniform(-5, 1))


def _raised_risk(head: Head, random: Any) -> Head:
    g = int(random.integers(head.risks.size))
    return _changed(head, "risks", g, head.risks[g] + _size(random))


def _lowered_offset(head: Head, random: Any) -> Head:
    j = _used(head, random)
    return _changed(head, "offset", j, head.offset[j] - _size(random))


def _raised_offset(head: Head, random: Any) -> Head:
    """Raised until the cut lies above the risk that its site answered: it can be no cut."""
    j = _used(head, random)
    norm = float(np.linalg.norm(head.weights[:-1]))
    height = head.offset[j] + head.slope[j] @ head.weights + head.norm_weight[j] * norm
    return _changed(head, "offset", j, head.offset[j] + head.risks[head.site[j]] - height + 1e-4 + _size(random))


def _turned_slope(head: Head, random: Any) -> Head:
    """Steeper where the weighted sum is steep already, so that the norm carries less of it."""
    j, d = _used(head, random), int(random.integers(head.weights.size))
    side = 1.0 if head.multipliers @ head.slope[:, d] >= 0 else -1.0
    return _changed(head, "slope", (j, d), head.slope[j, d] + side * max(_size(random), 1e-2))


def _less_multiplier(head: Head, random: Any) -> Head:
    j = _used(head, random)
    return _changed(head, "multipliers", j, head.multipliers[j] * random.uniform(-1.0, 0.9))


def _more_multiplier(head: Head, random: Any) -> Head:
    """Of a cut that shares its site with others than its like: theirs are scaled down."""
    used = np.flatnonzero(head.multipliers > 1e-3)
    unlike = (head.site[used, None] == head.site[used]) & (np.abs(head.offset[used, None] - head.offset[used]) > 1e-4)
    j = int(random.choice(used[unlike.any(axis=1)]))
    return _changed(head, "multipliers", j, head.multipliers[j] + 0.05 + _size(random))


def _lower_upper(head: Head, random: Any) -> Head:
    return replace(head, upper=head.upper - _size(random))


def _higher_lower(head: Head, random: Any) -> Head:
    return replace(head, lower=head.lower + _size(random))


def _moved_mixture(head: Head, random: Any) -> Head:
    g = int(random.integers(head.mixture.size))
    return _changed(head, "mixture", g, head.mixture[g] + random.choice([-1, 1]) * (1e-3 + _size(random)))


EDITS_OF_A_HEAD: list[Edit] = [
    _raised_risk, _lowered_offset, _raised_offset, _turned_slope, _less_multiplier, _more_multiplier, _lower_upper,
    _higher_lower, _moved_mixture,
]


def _edited(certificate: CertificateFile, random: Any) -> tuple[str, CertificateFile]:
    """A random change after which a claim does not follow any more."""
    kind = int(random.integers(len(EDITS_OF_A_HEAD) + 4))
    if kind < len(EDITS_OF_A_HEAD):
        edit = EDITS_OF_A_HEAD[kind]
        return edit.__name__, replace(certificate, heads=(edit(certificate.heads[0], random),))
    changes = {
        "lower": {"lower": certificate.lower + _size(random)},
        "upper": {"upper": certificate.upper - _size(random)},
        "gap": {"gap": certificate.gap * random.uniform(-1.0, 0.99)},
        "site_weights": {"site_weights": np.roll(certificate.site_weights, 1) * np.array([1.5, 0.5, 1.2, 0.8])},
    }
    name = list(changes)[kind - len(EDITS_OF_A_HEAD)]
    return name, replace(certificate, **changes[name])


def test_every_one_of_thousands_of_edits_that_break_a_bound_is_refused() -> None:
    random, refused, passed = np.random.default_rng(7), Counter[str](), list[str]()
    for number in range(EDITS):
        certificate = _known(MixtureBall("l2", 0.2)) if number % 8 == 0 else _known()
        name, edited = _edited(certificate, random)
        try:
            verify(edited)
            passed.append(f"{number}: {name}")
        except NotProvenError:
            refused[name] += 1
    assert not passed, passed[:20]
    assert sum(refused.values()) == EDITS and len(refused) == len(EDITS_OF_A_HEAD) + 4


def test_a_risk_may_not_count_for_less_than_the_cuts_of_a_plant_that_is_away() -> None:
    certificate = trained_certificate(**PROBLEMS["a plant is away"])
    (head,) = certificate.heads
    g = certificate.site_ids.index("plant-2")
    assert np.isnan(head.risks[g])
    raised = replace(head, offset=head.offset + np.where(head.site == g, 0.05, 0.0))
    with pytest.raises(NotProvenError, match="upper bound said to be"):
        verify(replace(certificate, heads=(raised,)))


def test_a_risk_may_not_be_below_what_the_radius_alone_makes_of_the_weights() -> None:
    certificate = trained_certificate(radius=1e-2, n_rows=30)
    (head,) = certificate.heads
    floor = floors(certificate, head) * np.linalg.norm(head.weights[:-1])
    assert floor[1] > 0
    low = replace(
        head, offset=head.offset - np.where(head.site == 1, 10.0, 0.0),
        risks=np.where(np.arange(4) == 1, 0.5 * floor, head.risks),
    )
    with pytest.raises(NotProvenError, match=f"{certificate.site_ids[1]} answered a risk that its own cuts refute"):
        verify(replace(certificate, heads=(low,)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radii": np.full(4, 1e-9)}, "more than the radius"),
        ({"label_flip_costs": np.zeros(4)}, "label flip costs above 0"),
        ({"site_weights": np.array([0.5, 0.5, 0.5, -0.5])}, "sum to 1"),
    ],
)
def test_a_problem_that_is_none_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(NotProvenError, match=words):
        verify(replace(trained_certificate(radius=1e-2, n_rows=30), **change))


def _zipped(kind: int, shape: tuple[int, ...], data: bytes) -> bytes:
    """A certificate file's zip with one array."""
    array, stored = io.BytesIO(), io.BytesIO()
    write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with ZipFile(stored, "w", kind) as archive:
        archive.writestr("header.npy", array.getvalue() + data)
    return stored.getvalue()


def _overlapping(names: int) -> bytes:
    """A zip file that lists one array under many names."""
    data = _zipped(ZIP_STORED, (1000,), bytes(8000))
    at = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    listed = data[at:end] * names
    sizes = struct.pack("<HHLL", names, names, len(listed), at)
    return data[:at] + listed + data[end : end + 8] + sizes + data[-2:]


BOMBS = {
    "a hundred times its size": _zipped(ZIP_DEFLATED, (10**6,), bytes(8 * 10**6)),
    "more than any memory": _zipped(ZIP_STORED, (10**14,), b""),
    "one array many times": _overlapping(500),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_unpacks_into_more_than_itself_is_refused_unread(bomb: str) -> None:
    data = BOMBS[bomb]
    tracemalloc.start()
    with pytest.raises(InvalidInputError, match="not a certificate file"):
        read_certificate(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10 * len(data) + 2**20


@pytest.mark.parametrize("cut", [0, 10, 200, -50])
def test_a_file_that_is_none_is_refused_with_one_line(cut: int) -> None:
    with pytest.raises(InvalidInputError, match="certificate file"):
        read_certificate(write_certificate(_known())[:cut])


@pytest.mark.parametrize(
    "change", [{"offset": np.array([np.nan])}, {"multipliers": np.zeros(1)}, {"slope": np.zeros((2, 2))},
               {"weights": np.full(11, np.inf)}, {"site": np.array([9])},
               {"lower": np.nan}, {"upper": np.nan}, {"lower": -np.inf}],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    (head,) = _known().heads
    with pytest.raises(InvalidInputError):
        read_certificate(write_certificate(replace(_known(), heads=(replace(head, **change),))))


def test_a_cut_without_a_slope_in_the_intercept_proves_although_nothing_bounds_it_there() -> None:
    one = np.ones(1)
    head = Head(
        weights=np.zeros(2), risks=one, mixture=one, site=np.zeros(1, dtype=np.intp), offset=one,
        slope=np.array([[0.1, 0.0]]), norm_weight=0.2 * one, swing=np.zeros((1, 0)), multipliers=one, around=one,
        upper=1.0, lower=1.0 - 1e-12,
    )
    certificate = CertificateFile(
        run_id="0" * 32, site_ids=("plant-1",), members=(), site_weights=one, radii=0.2 * one, label_flip_costs=one,
        lipschitz=1.0, transport_norm="l2", fit_intercept=True, mixture_norm="l2", mixture_radius=0.0, heads=(head,),
        upper=1.0, lower=1.0 - 1e-12, gap=1e-12,
    )
    assert verify(certificate).lower == pytest.approx(1.0)
    for slope, proven in ((1e-17, True), (1e-6, False)):
        sloping = replace(certificate, heads=(replace(head, slope=np.array([[0.1, slope]])),))
        if proven:
            assert any("for weights of at most 4096" in line for line in verify(sloping).checked)
        else:
            with pytest.raises(NotProvenError, match="lower bound"):
                verify(sloping)
