"""A certificate is of the problem that its version states: of its ball over the sites, and of no smaller one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.methods.bundle.level import WorstSiteServer
from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import digest
from services.verification.bounds import lower_bound
from services.verification.certificate_file import read_certificate, write_certificate
from services.verification.planes import weights_of
from services.verification.proof import NotProvenError, RefutedError
from services.verification.stated import OF_THE_WORST_SITE, counts_norm, has_intercept, steepness_said
from services.verification.version import verify_version
from tests.services.verification.drawn import RUN, trained_certificate
from tests.services.verification.test_hostile_certificates import told


def files(norm: str, radius: float, said: object) -> tuple[dict[str, Any], bytes]:
    """A version of two sites that says this of its ball, and the file of a certificate with that norm and radius."""
    certificate, _ = told(
        [(0, 0.0, [0.0], 0.0), (1, 1.0, [0.0], 0.0)], [0.5, 0.5], shares=[0.5, 0.5], mixture_norm=norm,
        mixture_radius=radius,
    )
    data = write_certificate(certificate)
    document: dict[str, Any] = {
        "run_id": RUN, "certificate_sha256": digest(data), "objective": 1.0, "lower_bound": 0.0, "certified_gap": 1.0,
        "sites": [{"site_id": f"plant-{g}", "weight": 0.5, "radius": 0.0} for g in (0, 1)], "weights": [[0.0, 0.0]],
        "spec": {"label_flip_cost": 1.0, "transport_norm": "l2", "fit_intercept": False}, "mixture": said,
    }
    return document, data


@pytest.mark.parametrize(("norm", "radius", "said"), [
    ("l1", 0.2, {"norm": "l1", "radius": 0.2}), ("l2", 0.0, {"norm": "l1", "radius": 0.0}), ("l2", 0.0, None),
])
def test_what_is_proven_of_the_versions_ball_is_proven(norm: str, radius: float, said: object) -> None:
    """Without a radius no norm is asked; versions from before there was a ball trust the weights of the sites."""
    assert verify_version(*files(norm, radius, said), None)[0].mixture_radius == radius


@pytest.mark.parametrize(("norm", "radius", "said"), [
    ("l1", 0.0, {"norm": "l1", "radius": 0.2}), ("l1", 0.1, {"norm": "l1", "radius": 0.2}),
    ("l1", 0.2, {"norm": "l1", "radius": 0.1}), ("l1", 0.2, {"norm": "linf", "radius": 0.2}), ("l1", 0.2, None),
])
def test_what_is_proven_of_another_ball_is_not(norm: str, radius: float, said: object) -> None:
    """Of fewer mixtures of the sites the worst has a smaller risk than the version states."""
    with pytest.raises(NotProvenError, match="not this version's: its ball over the sites differ"):
        verify_version(*files(norm, radius, said), None)


def test_a_method_against_the_worst_site_is_proven_of_every_mixture_and_of_no_fewer() -> None:
    """The list stands there by name, for what checks a proof does not ask what made it."""
    for name, method in METHODS.items():
        assert (name in OF_THE_WORST_SITE) == isinstance(method.server, WorstSiteServer)
    for norm, radius, proven in (("l1", 2.0, True), ("l1", 0.2, False), ("l2", 2.0, False)):
        document, data = files(norm, radius, {"norm": "l1", "radius": 0.2})
        if proven:
            assert verify_version(document | {"method": "drfa-exact"}, data, None)[0].mixture_radius == 2.0
        else:
            with pytest.raises(NotProvenError, match="its ball over the sites differ"):
                verify_version(document | {"method": "drfa-exact"}, data, None)


@pytest.mark.parametrize("said", [1.0, {"norm": "l1"}, {"norm": "l1", "radius": "wide"}, {"norm": "l1", "radius": []}])
def test_a_ball_that_is_none_is_told_in_one_line(said: object) -> None:
    with pytest.raises(InvalidInputError, match="the document is not that of a version"):
        verify_version(*files("l1", 0.2, said), None)


def of_loss(lipschitz: float, said: object) -> tuple[dict[str, Any], bytes]:
    """A version that says this of its loss, and the file of a certificate with that constant and a cut along the norm.

    The floor 0.3 |w| that the cut makes proves a lower bound of 0.1; max(0.5 + w, 0.1 |w|) has a least of 0.045.
    """
    cuts = [(0, 0.5, [1.0], 0.0), (0, -9.0, [0.0], 0.3)]
    certificate, head = told(cuts, [0.2, 0.0], shares=[1.0], lipschitz=lipschitz, radii=np.array([0.1]))
    lower = lower_bound(certificate, head, 1.0)
    assert lower == pytest.approx(0.1)
    heads = (replace(head, risks=np.array([1.0]), lower=lower),)
    data = write_certificate(replace(certificate, heads=heads, lower=lower, gap=1.0 - lower))
    spec = {"label_flip_cost": 1.0, "transport_norm": "l2", "fit_intercept": False}
    document: dict[str, Any] = {
        "run_id": RUN, "certificate_sha256": digest(data), "objective": 1.0, "lower_bound": lower,
        "certified_gap": 1.0 - lower, "weights": [[0.0, 0.0]],
        "sites": [{"site_id": "plant-0", "weight": 1.0, "radius": 0.1}],
        "spec": spec if said is None else spec | {"loss": said},
    }
    return document, data


@pytest.mark.parametrize(("lipschitz", "said"), [
    (3.0, None), (3.0, {"name": "hinge"}), (100.0, "logistic"), (3.0, {"name": "pinball", "quantile": 0.5}),
])
def test_what_is_proven_of_a_steeper_loss_is_not(lipschitz: float, said: object) -> None:
    """By it cuts may count the norm of the weights as often as they like, and what they count bounds every risk."""
    with pytest.raises(NotProvenError, match="not this version's: its constant of the loss differ"):
        verify_version(*of_loss(lipschitz, said), None)


def test_a_cut_that_counts_the_norm_more_than_the_versions_loss_lets_it_is_refuted() -> None:
    with pytest.raises(RefutedError, match="counts the norm more than the radius of the site allows"):
        verify_version(*of_loss(1.0, None), None)


@pytest.mark.parametrize("support", ["sensor_ranges", {"rows": [], "bounds": []}])
def test_cuts_along_the_norm_are_none_of_a_version_whose_features_are_bounded(support: object) -> None:
    """There the risk is not at least the radius times the norm: a row can be moved to the end of its range alone."""
    document, data = of_loss(3.0, "hinge")
    certificate = replace(read_certificate(data), lipschitz=1.0, radii=np.array([0.3]))
    data = write_certificate(certificate)
    document |= {
        "certificate_sha256": digest(data), "sites": [{"site_id": "plant-0", "weight": 1.0, "radius": 0.3}],
    }
    assert verify_version(document, data, None)[1].lower == pytest.approx(0.1)
    document["spec"] = document["spec"] | {"support": support}
    with pytest.raises(NotProvenError, match="not this version's: its features' support differ"):
        verify_version(document, data, None)


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
@pytest.mark.parametrize("more", [{"method": "level-bundle"}, {"method": "cohort-bundle", "cohort_size": 3}])
def test_a_run_on_sensor_ranges_has_no_cut_along_the_norm(loss: str, more: dict[str, Any]) -> None:
    assert not counts_norm(trained_certificate(box=True, loss=loss, n_sites=6, radius=0.05, **more))
    assert counts_norm(trained_certificate(loss=loss, n_sites=6, radius=0.05, **more))


@pytest.mark.parametrize(("name", "more", "constant"), [
    ("smooth_hinge", {}, 1.0), ("huber", {"epsilon": 0.25}, 0.25), ("pinball", {"quantile": 0.9}, 0.9),
    ("squared", {}, 1e100), ("cross_entropy", {}, 1e100),
])
def test_the_constant_of_a_loss_is_that_of_its_name_and_number(name: str, more: Any, constant: float) -> None:
    assert steepness_said({"spec": {"loss": {"name": name, **more}}}) == constant
    assert steepness_said({"spec": {"loss": name}}) >= 0.5


@pytest.mark.parametrize("said", [7, {"name": "steep"}, {"name": "pinball", "quantile": 2.0}, []])
def test_a_loss_that_is_none_is_told_in_one_line(said: object) -> None:
    with pytest.raises(InvalidInputError, match="the document is not that of a version"):
        verify_version(*of_loss(1.0, said), None)


def test_a_version_that_names_a_site_twice_is_no_certificates() -> None:
    """Of two entries the last one counted, and the other said what it liked."""
    document, data = files("l2", 0.0, None)
    document["sites"].insert(0, {"site_id": "plant-1", "weight": 0.9, "radius": 7.0})
    with pytest.raises(NotProvenError, match="not this version's: its sites differ"):
        verify_version(document, data, None)


@pytest.mark.parametrize(("weights", "count"), [(5, 2), (4, 2), (7, 3)])
def test_a_head_of_all_classes_has_as_many_weights_as_their_planes(weights: int, count: int) -> None:
    certificate, _ = told([(0, 0.0, [0.0] * weights, 0.0)], [1.0], shares=[1.0], weights=[1.0] * weights)
    planes = [[1.0] * (weights // count) + [0.0]] * count
    document = {"weights": planes, "spec": {"fit_intercept": False, "loss": {"name": "cross_entropy"}}}
    held, said = weights_of(certificate, document)
    assert (held == said) == (weights % count == 0)


def test_without_a_ball_no_mixture_counts_but_the_weights_themselves() -> None:
    cuts = [(0, 0.0, [0.0], 0.1), (1, 1.0, [0.0], 0.1)]
    certificate, head = told(cuts, [0.5, 0.5], shares=[0.5, 0.5])
    assert lower_bound(certificate, head, 1.0) == pytest.approx(0.5)
    near = np.array([0.5 - 1e-10, 0.5 + 1e-10])
    assert lower_bound(certificate, replace(head, mixture=near, multipliers=near), 1.0) == 0.0


@pytest.mark.parametrize(("multi_class", "planes", "last_is_intercept"), [
    ("crammer_singer", 3, False), ("crammer_singer", 1, True), ("one_vs_rest", 3, True),
])
def test_of_two_classes_the_last_weight_is_an_intercept_however_more_would_be_trained(
    multi_class: str, planes: int, last_is_intercept: bool
) -> None:
    """All classes are one problem from three on: two have one plane."""
    spec = {"multi_class": multi_class, "fit_intercept": True}
    assert has_intercept({"spec": spec, "weights": [[0.0, 0.0]] * planes}) == last_is_intercept
    assert not has_intercept({"spec": {**spec, "fit_intercept": False}, "weights": [[0.0, 0.0]] * planes})
