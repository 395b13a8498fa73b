"""What server halves with evidence share: states of some of the sites, when a run is over, states packed and read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.evidence import Evidence
from models.methods.bundle.wafl import WaflServer, WaflState
from models.methods.certified import PointState, is_still
from models.methods.splitting.consensus_admm import AdmmServer, AdmmState
from models.methods.splitting.subgradient import SubgradientServer
from models.problem import Status
from tests.models.cuts.test_evidence import known
from tests.models.cuts.told import answer_of, problem_of


def test_a_state_of_some_sites_has_their_rows_in_their_order() -> None:
    """And of the bounds nothing; the same point is asked next."""
    random = np.random.default_rng(0)
    local, dual = random.normal(size=(2, 5, 3))
    state = AdmmState(replace(known(), lower=0.5), np.arange(3.0), local, dual)
    fewer = AdmmServer().of_sites(state, problem_of(), [3, 0])
    assert (fewer.local == local[[3, 0]]).all() and (fewer.dual == dual[[3, 0]]).all()
    assert fewer.evidence.lower == 0.0 and (fewer.point == state.point).all()
    wafl = WaflState(known(), np.zeros(4), np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert WaflServer().of_sites(wafl, problem_of(), [4, 2, 0]).floor.tolist() == [0.5, 0.3, 0.1]


def test_what_a_run_ends_with_is_the_best_point_and_neither_the_last_nor_the_next() -> None:
    """The certificate is of it alone; WAFL leaves the price out, which is no weight."""
    best = known().judged_by(np.array([4.0, 2.0, 3.0, 5.0]))
    assert (best.best_point != best.points[-1]).any()
    asked = np.full(3, 7.0)
    assert SubgradientServer().weights(PointState(best, asked)).tolist() == best.points[1].tolist()
    admm = AdmmState(best, asked, np.ones((5, 3)), np.ones((5, 3)))
    assert AdmmServer().weights(admm).tolist() == best.points[1].tolist()
    wafl = WaflState(best, asked, np.ones(5))
    assert WaflServer().weights(wafl).tolist() == best.points[1, :2].tolist()


def test_a_point_is_still_as_near_as_its_size_tells_and_a_risk_of_rounding_is() -> None:
    for moved, size, upper, still in (
        (1e-14, 0.0, 1.0, True), (2e-14, 0.0, 1.0, False), (9e-12, 1e3, 1.0, True), (1.1e-11, 1e3, 1.0, False),
        (9e-12, -1e3, 1.0, True), (1.0, 1.0, 1e-14, True), (1.0, 1.0, 2e-14, False), (0.0, 1.0, np.inf, True),
    ):
        assert is_still(moved, np.array([0.0, size]), upper) is still


def test_a_run_is_certified_before_it_is_stalled_and_stalled_where_nothing_moves() -> None:
    server, problem = SubgradientServer(), problem_of(gap=1e-2)
    for lower, stagnated, status in (
        (1.985, False, Status.CERTIFIED), (1.985, True, Status.CERTIFIED), (1.0, True, Status.STALLED),
        (1.0, False, Status.CONTINUE),
    ):
        evidence = replace(known(), upper=2.0, lower=lower, fresh_weight=1.0, best=0)
        assert server.status(PointState(evidence, np.ones(3), stagnated=stagnated), problem) is status


@pytest.mark.parametrize("stagnated", [True, False])
def test_a_packed_state_is_read_again_with_its_flags_and_arrays(stagnated: bool) -> None:
    """States of version 0.1 call the flag otherwise, or have none."""
    server = AdmmServer()
    state = AdmmState(known(), np.ones(3), np.ones((5, 3)), np.full((5, 3), 2.0), stagnated=stagnated)
    packed = server.pack(state)
    assert packed["still"] == float(stagnated) and "stagnated" not in packed
    found = server.unpack(packed)
    assert found.stagnated is stagnated and (found.dual == 2.0).all() and found.evidence.exchanges == 3
    assert server.unpack({name: array for name, array in packed.items() if name != "still"}).stagnated is False


def test_the_first_point_is_zero_and_is_asked_of_every_site() -> None:
    server, problem = SubgradientServer(), problem_of()
    state = server.init(problem)
    messages = server.messages(state, problem)
    assert list(messages) == ["a", "b", "c", "d", "e"]
    assert all((each["point"] == np.zeros(3)).all() for each in messages.values())
    assert isinstance(state.evidence, Evidence) and (server.asked(state) == 0.0).all()


@pytest.mark.parametrize("liar", ["a", "c", "e"])
def test_who_contradicts_what_it_said_before_is_named(liar: str) -> None:
    """A flat cut says that the risk is as high wherever it is asked, at the end too; sites have unlike risks."""
    server, problem = SubgradientServer(), problem_of(parameters={"step_size": 1.0, "step_power": 1.0})
    true = {name: 1.0 + place for place, name in enumerate("abcde")}
    state = server.init(problem)
    slopes = {name: (0.1 * (name != liar), 0.0, 0.0) for name in true}
    state = server.step(state, problem, {name: answer_of(risk, slopes[name]) for name, risk in true.items()})
    rise = 0.1 * float(server.asked(state)[0])
    told = {name: answer_of(risk + rise, slopes[name]) for name, risk in true.items() if name != liar}
    assert server.contradictions(state, problem, told) == {}
    lie = {liar: answer_of(true[liar] - 0.5)}
    assert set(server.contradictions(state, problem, {**told, **lie})) == {liar}
    assert set(server.false_ends(state, problem, np.zeros(3), true | {liar: true[liar] - 0.5})) == {liar}
    assert server.false_ends(state, problem, np.zeros(3), true | {"nobody": 0.5}) == {}
