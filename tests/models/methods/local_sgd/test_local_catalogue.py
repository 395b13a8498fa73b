"""Methods of local steps: what each parameter may be at its ends, and what each method takes."""

from __future__ import annotations

import math

import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS, check_method_problem, check_parameters, get_method
from models.methods.local_sgd.catalogue import LOCAL_METHODS, LOCAL_RANGES
from models.methods.local_sgd.drfa import WorstMixtureServer
from models.methods.local_sgd.feddro import FedDroServer, FedDroSite
from models.methods.local_sgd.mixup import MixupSite
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.protocol import Method
from models.site_ambiguity.ball import MixtureBall

LEAST_OPEN = (
    "batch", "alpha", "beta", "global_step", "dual_step", "mixup_alpha", "mixup_beta", "temperature", "tracking"
)
"""Above 0, which itself has no meaning: a share of nothing, no step, a price of nothing."""
MOST = {
    "batch": 1.0, "epochs": 1000, "local_steps": 10000, "clients": 1e6, "q": 100.0, "alpha": 1.0, "beta": 1.0,
    "choose_after": 1e6, "worst_share": 1.0, "mixup_alpha": 1e6, "mixup_beta": 1e6, "mixup_ratio": 1.0,
    "temperature": 1e6, "tracking": 1.0, "over_rows": 1,
}
WHOLE = ("epochs", "local_steps", "clients", "seed", "choose_after", "over_rows")
WITHOUT_END = (
    "proximal", "ridge", "global_step", "dual_step", "strong_convexity", "smoothness", "coupling", "tau0", "gamma0",
    "mixture_step",
)


@pytest.mark.parametrize("name", sorted(LOCAL_RANGES))
def test_a_parameter_is_within_its_ends(name: str) -> None:
    allowed = LOCAL_RANGES[name]
    least = 1.0 if name == "epochs" else 0.0
    assert (least in allowed) is (name not in LEAST_OPEN)
    assert least - 1.0 not in allowed and math.nan not in allowed and math.inf not in allowed
    assert (least + 0.5 in allowed) is (name not in WHOLE)
    if name in MOST:
        assert MOST[name] in allowed and MOST[name] + 1 not in allowed
    if name in WITHOUT_END:
        assert 1e300 in allowed
    if name == "phi":
        assert 1.0 not in allowed and 0.999 in allowed
    if name == "seed":
        assert 2**32 - 1 in allowed and 2**33 not in allowed


SUMMED = {"fedsgd", "fedavg", "fedprox", "scaffold"}
CONTROLLED = {"scaffold", "scaff-pd", "scaff-pd-ia"}
WALKING = {"drfa", "drflm", "safl"}


@pytest.mark.parametrize("method", LOCAL_METHODS, ids=lambda method: method.name)
def test_what_a_method_takes(method: Method) -> None:
    """Sums where the server's step is one, any loss but under control variates, a ball where the mixture walks."""
    name = method.name
    found = METHODS[name]
    assert found.on_sums is (name in SUMMED) and found.needs_smooth_loss is (name in CONTROLLED)
    assert found.supports_mixture is (name in WALKING) is isinstance(found.server, WorstMixtureServer)
    assert found.ignores_radius and isinstance(found.site, LocalStepsSite)
    assert isinstance(found.site, MixupSite) is (name == "drflm")
    assert isinstance(found.site, FedDroSite) is isinstance(found.server, FedDroServer) is (name == "feddro")
    assert getattr(found.site, "one_step", False) is (name in ("fedsgd", "safl"))
    check_method_problem(found, MixtureBall(), loss=get_loss("squared"), n_sites=3)
    with pytest.raises(ProblemError, match="it takes no row weights"):
        check_method_problem(found, MixtureBall(), weighted=True)
    if name in CONTROLLED:
        with pytest.raises(ProblemError, match="needs a smooth loss"):
            check_method_problem(found, MixtureBall(), loss=get_loss("hinge"))
    if name not in WALKING:
        with pytest.raises(ProblemError, match="radius over the sites must be 0"):
            check_method_problem(found, MixtureBall("l2", 1e-9))


def test_what_the_methods_with_a_worst_case_refuse() -> None:
    """A loss without one over a ball, but where there is no ball; any number of sites and row weights they take."""
    for name in ("level-bundle", "cohort-bundle", "fdr-admm", "drfl-admm", "wafl"):
        with pytest.raises(ProblemError, match="squared loss has no worst case over a ball"):
            check_method_problem(get_method(name), MixtureBall(), loss=get_loss("squared"))
        check_method_problem(get_method(name), MixtureBall(), loss=get_loss("hinge"), n_sites=1, weighted=True)
    for name in ("standard", "afl", "drfa-exact"):
        check_method_problem(get_method(name), MixtureBall(), loss=get_loss("squared"))
    with pytest.raises(ProblemError, match="features without bounds"):
        check_method_problem(get_method("wafl"), MixtureBall(), supported=True)
    check_method_problem(get_method("level-bundle"), MixtureBall("l2", 0.5), supported=True)


def test_no_more_sites_are_drawn_than_there_are() -> None:
    method = get_method("drfa")
    check_method_problem(method, MixtureBall(), n_sites=3, parameters={"clients": 3.0})
    with pytest.raises(ProblemError):
        check_method_problem(method, MixtureBall(), n_sites=3, parameters={"clients": 4.0})


def test_parameters_that_do_not_go_together_are_refused() -> None:
    """Strong convexity above smoothness: the steps of Assumption 8 have no meaning."""
    with pytest.raises(ProblemError):
        check_parameters(get_method("scaff-pd"), {"strong_convexity": 2.0, "smoothness": 1.0})
    assert check_parameters(get_method("scaff-pd"), {"strong_convexity": 1.0, "smoothness": 2.0})["smoothness"] == 2.0
