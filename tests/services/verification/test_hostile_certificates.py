"""Certificates made by hand to prove more than is true: small cut models whose least is known."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import digest
from services.verification import certificate_file
from services.verification.bounds import lower_bound
from services.verification.certificate_file import CertificateFile, Head, read_certificate, write_certificate
from services.verification.proof import RefutedError, verify
from services.verification.version import verify_version
from tests.services.verification.drawn import RUN


def told(
    cuts: list[tuple[int, float, list[float], float]], multipliers: list[float], *, shares: list[float],
    mixture: list[float] | None = None, weights: list[float] | None = None, swing: list[list[float]] | None = None,
    fit_intercept: bool = False, **more: Any,
) -> tuple[CertificateFile, Head]:
    """Certificate of cuts ``(site, offset, slope, norm_weight)`` and its head; the multipliers are ``around`` too."""
    n_sites, count, d = len(shares), len(cuts), len(cuts[0][2])
    head = Head(
        weights=np.array(weights or [0.0] * d), risks=np.full(n_sites, np.nan), mixture=np.array(mixture or shares),
        site=np.array([cut[0] for cut in cuts]), offset=np.array([cut[1] for cut in cuts]),
        slope=np.array([cut[2] for cut in cuts]), norm_weight=np.array([cut[3] for cut in cuts]),
        swing=np.array(swing) if swing else np.zeros((count, 0)), multipliers=np.array(multipliers),
        around=np.array(multipliers), upper=1.0, lower=0.0,
    )
    certificate = CertificateFile(
        run_id=RUN, site_ids=tuple(f"plant-{g}" for g in range(n_sites)), site_weights=np.array(shares),
        radii=np.zeros(n_sites), label_flip_costs=np.ones(n_sites), lipschitz=1.0, transport_norm="l2",
        fit_intercept=fit_intercept, mixture_norm="l2", mixture_radius=0.0, heads=(head,), upper=1.0, lower=0.0,
        gap=1.0,
    )
    return replace(certificate, **more), head


def test_a_file_whose_arrays_are_packed_is_not_read_in_more_memory_than_it_has_bytes() -> None:
    """Zeros are packed to a thousandth."""
    certificate, _ = told([(0, 0.5, [0.0] * 5000, 0.0)], [1.0], shares=[1.0])
    whole, packed = write_certificate(certificate), io.BytesIO()
    with np.load(io.BytesIO(whole)) as stored:
        np.savez_compressed(packed, **stored)
    assert read_certificate(whole).heads[0].slope.shape == (1, 5000) and len(packed.getvalue()) < len(whole) / 10
    with pytest.raises(InvalidInputError, match="not a certificate file"):
        read_certificate(packed.getvalue())


def test_a_multiplier_below_zero_lifts_no_bound() -> None:
    """F(w) = max(.5 + w, .5 - w, .4) is .5 at 0; with -.8 of the last cut the others would have .5 of 1.8."""
    cuts = [(0, 0.5, [1.0], 0.0), (0, 0.5, [-1.0], 0.0), (0, 0.4, [0.0], 0.0)]
    certificate, head = told(cuts, [0.9, 0.9, -0.8], shares=[1.0])
    assert lower_bound(certificate, head, 0.5) <= 0.5
    certificate, head = told(cuts, [0.5, 0.5, 0.0], shares=[1.0])
    assert lower_bound(certificate, head, 0.5) >= 0.5 - 1e-9


def test_a_mixture_with_a_share_below_zero_proves_nothing() -> None:
    """Where the weights are 0 the risks are 0 and 1, so no mixture of them is above 1."""
    cuts = [(0, 0.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)]
    for share, proven in ((0.0, 1.0), (-5e-4, 0.0), (-0.2, 0.0)):
        certificate, head = told(
            cuts, [0.0, 1.0 - share], shares=[0.5, 0.5], mixture=[share, 1.0 - share], mixture_radius=5.0
        )
        assert abs(lower_bound(certificate, head, 1.0) - proven) <= 1e-9


def test_a_mixture_a_little_out_of_the_ball_or_above_the_sum_proves_nothing() -> None:
    """The risks are 0 and 1, so the bound would be too high by what the second share is."""
    cuts, most = [(0, 0.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)], 0.1 / 2.0**0.5
    for first, second, proven in (
        (0.5 - most, 0.5 + most, True), (0.5 - most - 1e-9, 0.5 + most + 1e-9, False), (0.5, 0.5 + 1e-9, False),
    ):
        certificate, head = told(
            cuts, [0.0, second], shares=[0.5, 0.5], mixture=[first, second], mixture_radius=0.1
        )
        found = lower_bound(certificate, head, 1.0)
        assert abs(found - second) <= 1e-9 if proven else found == 0.0


def test_a_mixture_out_of_the_ball_by_rounding_proves_no_more_than_the_ball_does() -> None:
    """The risks are 0 and 1: the bound is the second share, which may be .6 in the ball and is a little above it."""
    cuts = [(0, 0.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)]
    for beyond in (0.0, 1e-14, 4e-14):
        mixture = [0.4 - beyond, 0.6 + beyond]
        certificate, head = told(
            cuts, [0.0, mixture[1]], shares=[0.5, 0.5], mixture=mixture, mixture_norm="l1", mixture_radius=0.2
        )
        assert 0.6 - 1e-10 <= lower_bound(certificate, head, 1.0) <= 0.6


def test_cuts_of_a_site_without_a_share_count_for_nothing() -> None:
    certificate, head = told(
        [(0, 10.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)], [1.0, 1.0], shares=[0.0, 1.0]
    )
    assert 1.0 - 1e-9 <= lower_bound(certificate, head, 1.0) <= 1.0


def test_a_cut_that_falls_with_the_norm_proves_nothing_where_no_floor_does() -> None:
    """F(w) = max(1 + w - 2 |w|, 1 - w - 2 |w|, 0) = max(1 - |w|, 0); without the norms it would be 1 at least."""
    certificate, head = told([(0, 1.0, [1.0], -2.0), (0, 1.0, [-1.0], -2.0)], [0.4, 0.4], shares=[1.0])
    assert lower_bound(certificate, head, 1.0) == 0.0


def test_a_swing_takes_off_no_more_of_a_slope_than_itself() -> None:
    """F(w) = max(1 + 3 w + |w|, 1 + 4 w + |w|, 0); -3.5 of the swing would leave no slope."""
    certificate, head = told(
        [(0, 1.0, [3.0], 0.0), (0, 1.0, [4.0], 0.0)], [0.4, 0.4], shares=[1.0], swing=[[1.0], [1.0]]
    )
    assert lower_bound(certificate, head, 1.0) == 0.0


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_intercept_reaches_as_far_as_the_cuts_let_it_on_either_side(side: float) -> None:
    """F(w, b) = max(|w|, s b - 5 |w|, -s b, 1 - s b/100) is least at s b = 6 |w|: 1 / 1.06."""
    least = 1.0 / 1.06
    cuts = [(0, 0.0, [0.0, 0.0], 1.0), (0, 0.0, [0.0, side], -5.0), (0, 0.0, [0.0, -side], 0.0),
            (0, 1.0, [0.0, -0.01 * side], 0.0)]
    certificate, head = told(
        cuts, [0.0, 0.0, 0.0, 1.0], shares=[1.0], weights=[least, 6 * least * side], fit_intercept=True
    )
    assert least - 1e-9 <= lower_bound(certificate, head, least) <= least + 1e-12


@pytest.mark.parametrize("around", [[0.4, 0.0], [0.4, 0.4]], ids=["of one cut", "of both"])
def test_multipliers_that_bound_no_best_weights_prove_nothing(around: list[float]) -> None:
    """F(w, v) = max(1 + w + v/100, 1 - w + v/100, 0) is 0 where v is far below 0."""
    certificate, head = told([(0, 1.0, [1.0, 0.01], 0.0), (0, 1.0, [-1.0, 0.01], 0.0)], [0.4, 0.4], shares=[1.0])
    assert lower_bound(certificate, replace(head, around=np.array(around)), 1.0) == 0.0


@pytest.mark.parametrize("site", [-1, 2])
def test_a_cut_of_a_site_that_is_not_named_is_none_of_the_last_ones(site: int) -> None:
    certificate, _ = told([(0, 0.0, [0.0], 0.1), (site, 1.0, [0.0], 0.1)], [0.0, 1.0], shares=[0.5, 0.5])
    with pytest.raises(InvalidInputError, match="a cut of the certificate is of a site that it does not name"):
        read_certificate(write_certificate(certificate))


def test_a_site_that_is_named_twice_is_no_two_plants() -> None:
    certificate, _ = told([(0, 0.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)], [0.0, 1.0], shares=[0.5, 0.5])
    assert read_certificate(write_certificate(certificate)).plants == ("plant-0", "plant-1")
    with pytest.raises(InvalidInputError, match="a certificate needs sites, each once"):
        read_certificate(write_certificate(replace(certificate, site_ids=("plant-1", "plant-1"))))


ARRAYS = (
    "weights", "risks", "mixture", "site", "offset", "slope", "norm_weight", "swing", "multipliers", "around",
)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_length_is_none_of_a_certificate(name: str) -> None:
    """Who reads the file is told so in one line, and no array is stretched to the others."""
    certificate, head = told(
        [(0, 0.0, [1.0, 0.0], 0.1), (1, 1.0, [0.0, 1.0], 0.1)], [0.5, 0.5], shares=[0.5, 0.5],
        swing=[[0.0, 0.0], [0.0, 0.0]],
    )
    assert read_certificate(write_certificate(certificate)).run_id == RUN
    for changed in (getattr(head, name)[:1], np.concatenate([getattr(head, name)] * 2)):
        other = replace(certificate, heads=(replace(head, **{name: changed}),))
        with pytest.raises(InvalidInputError, match="an array of the certificate|do not fit|a cut of the certificate"):
            read_certificate(write_certificate(other))


@pytest.mark.parametrize("name", sorted({*ARRAYS} - {"site"}))
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.1e100, -1.1e100])
def test_a_number_that_no_honest_file_comes_near_is_refused_on_either_side(name: str, value: float) -> None:
    """Products of two such numbers would be infinite, and infinity less infinity says nothing."""
    certificate, head = told([(0, 0.0, [1.0], 0.1)], [0.5], shares=[1.0], swing=[[0.0]])
    array = getattr(head, name).copy()
    array.flat[0] = value
    with pytest.raises(InvalidInputError, match="holds a number that is not finite, or above 1e"):
        read_certificate(write_certificate(replace(certificate, heads=(replace(head, **{name: array}),))))


def test_a_certificate_of_another_schema_is_not_read_as_one_of_this(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, _ = told([(0, 0.0, [0.0], 0.1)], [1.0], shares=[1.0])
    with monkeypatch.context() as later:
        later.setattr(certificate_file, "SCHEMA", "ballast.certificate/2")
        data = write_certificate(certificate)
    with pytest.raises(InvalidInputError, match="its schema must be 'ballast.certificate/1'"):
        read_certificate(data)


@pytest.mark.parametrize(("key", "value"), [
    ("upper", 10**400), ("gap", 10**400), ("heads", float("inf")), ("fit_intercept", float("inf")),
    ("confidence", 10**400), ("heads", None), ("members", 1),
], ids=["upper", "gap", "heads", "intercept", "confidence", "no heads", "members"])
def test_a_header_without_numbers_is_none_of_a_certificate(key: str, value: Any) -> None:
    """Whole numbers of JSON may be larger than any number that is reckoned with."""
    certificate, _ = told([(0, 0.0, [0.0], 0.1)], [1.0], shares=[1.0])
    with np.load(io.BytesIO(write_certificate(certificate))) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes()) | {"within": 1.0, key: value}
    data = io.BytesIO()
    np.savez(data, **arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(InvalidInputError, match="not a certificate file"):
        read_certificate(data.getvalue())


@pytest.mark.parametrize(("place", "value"), [(8, 1), (8, 32), (10, 99), (10, 12)])
def test_a_zip_file_that_nobody_can_unpack_is_none_of_a_certificate(place: int, value: int) -> None:
    """Encrypted, patched, or packed by another method."""
    certificate, _ = told([(0, 0.0, [0.0], 0.1)], [1.0], shares=[1.0])
    data = bytearray(write_certificate(certificate))
    data[data.index(b"PK\1\2") + place] = value
    with pytest.raises(InvalidInputError, match="not a certificate file"):
        read_certificate(bytes(data))


@pytest.mark.parametrize("changed", [
    {"objective": 10**400}, {"objective": []}, {"objective": "much"}, {"weights": [[10**400]]}, {"weights": [["a"]]},
    {"sites": [1]}, {"sites": [{"site_id": "plant-0", "weight": 10**400, "radius": 0.0}]}, {"spec": None}, {"spec": {}},
    {"coupling": {"matrix": [[1.0]], "offsets": [10**400]}}, {"coupling": {}}, {"lower_bound": None},
])
def test_a_document_without_the_numbers_that_are_due_is_none_of_a_version(changed: dict[str, Any]) -> None:
    """Who verifies it is told so in one line, whoever made it."""
    cuts = [(0, 0.5, [1.0, 0.0], 0.0), (0, 0.5, [-1.0, 0.0], 0.0)]
    certificate, _ = told(cuts, [0.5, 0.5], shares=[1.0], fit_intercept=True)
    data = write_certificate(certificate)
    document: dict[str, Any] = {
        "run_id": RUN, "certificate_sha256": digest(data), "objective": 1.0, "lower_bound": 0.0, "certified_gap": 1.0,
        "sites": [{"site_id": "plant-0", "weight": 1.0, "radius": 0.0}], "weights": [[0.0, 0.0]],
        "spec": {"label_flip_cost": 1.0, "transport_norm": "l2", "fit_intercept": True},
    }
    assert verify_version(document, data, None)[0].run_id == RUN
    with pytest.raises(InvalidInputError, match="the document is not that of a version"):
        verify_version(document | changed, data, None)


@pytest.mark.parametrize("name", ["upper", "lower", "gap", "lipschitz", "mixture_radius"])
def test_a_bound_or_constant_of_a_certificate_that_is_infinite_is_none(name: str) -> None:
    certificate, _ = told([(0, 0.0, [0.0], 0.1)], [1.0], shares=[1.0])
    with np.load(io.BytesIO(write_certificate(certificate))) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes()) | {name: float("inf")}
    data = io.BytesIO()
    np.savez(data, **arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(InvalidInputError, match="bounds must be finite numbers"):
        read_certificate(data.getvalue())
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_certificate(replace(certificate, **{name: float("inf")}))


def test_the_site_whose_cut_counts_the_norm_too_much_is_named() -> None:
    cuts = [(0, 0.0, [0.0], 0.1), (1, 0.0, [0.0], 0.5)]
    certificate, _ = told(cuts, [0.5, 0.5], shares=[0.5, 0.5], radii=np.array([0.2, 0.2]))
    with pytest.raises(RefutedError, match="^a cut of plant-1 counts the norm more"):
        verify(certificate)
