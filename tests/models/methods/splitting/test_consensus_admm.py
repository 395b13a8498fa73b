"""A step of consensus ADMM by hand: the mean of what is known, and the duals of the sites that answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.basics import Arrays
from models.methods.catalogue import get_method
from models.methods.splitting.consensus_admm import AdmmServer
from models.simulation.federation import FIXED, server_problem
from tests.models.methods.splitting.drawn import drawn_sites


def test_an_absent_site_of_admm_keeps_its_weights_and_its_dual() -> None:
    """It enters the mean by what it last told, and only the duals of those that answered move."""
    sites, method, server = drawn_sites(), get_method("fdr-admm"), AdmmServer()
    problem = server_problem(sites, None, method, {}, 1e-3, FIXED)
    random = np.random.default_rng(1)
    state = replace(server.init(problem), local=random.normal(size=(3, 3)), dual=random.normal(size=(3, 3)))
    messages = server.messages(state, problem)
    for g, name in enumerate(sites):
        np.testing.assert_allclose(messages[name]["centre"], state.point - state.dual[g])
    answers: Mapping[str, Arrays] = {
        k: method.site.answer(sites[k], messages[k], problem.parameters) for k in ("site-0", "site-2")
    }
    moved = server.step(state, problem, answers)
    local = np.stack([answers["site-0"]["local_point"], state.local[1], answers["site-2"]["local_point"]])
    point = (local + state.dual).mean(axis=0)
    dual = state.dual + local - point
    dual[1] = state.dual[1]
    np.testing.assert_allclose(moved.point, point)
    np.testing.assert_allclose(moved.dual, dual)
    np.testing.assert_array_equal(moved.local[1], state.local[1])
