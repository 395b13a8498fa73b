"""One-vs-rest: heads do not mix, shapes stay, the certificate is of the sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from models.basics import ProblemError
from models.methods.catalogue import METHODS, get_method
from models.methods.local_sgd.phi_choice import begin_choice
from models.methods.local_sgd.scaff_pd import ScaffRule
from models.multiclass import head_labels, n_heads, predict_class
from models.one_vs_rest import OneVsRestServer, answer_heads
from models.problem import Certificate, RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status


def _data(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    features = random.uniform(0, 1, (90, 3))
    noisy = features[:, 0] + 0.1 * random.normal(size=90)
    return features, np.clip((noisy * n_classes).astype(np.intp), 0, n_classes - 1)


def _problem(name: str, gap: float) -> ServerProblem:
    sites = tuple(SiteTerms(f"s{g}", 1 / 3, 0.01, 1.0) for g in range(3))
    return ServerProblem(3, sites, "l2", True, gap=gap, parameters=get_method(name).parameters)


SPEC = RobustSpec(0.01, 1.0, "l2")
PARTS = np.array_split(np.arange(90), 3)


def _round(name: str, server: Any, state: Any, problem: ServerProblem, n_classes: int) -> Any:
    features, classes = _data(n_classes)
    site, signs = get_method(name).site, head_labels(classes, n_classes)
    messages, answers = server.messages(state, problem), {}
    for g, part in enumerate(PARTS):
        problems = [SiteProblem(features[part], head[part], SPEC) for head in signs]
        answers[f"s{g}"] = answer_heads(site, problems, messages[f"s{g}"], problem.parameters)
    for answer in answers.values():
        shapes = server.answer_shapes(problem.dimension, 0, problem.parameters)
        assert {key: array.shape for key, array in answer.items()} == shapes
    return server.step(state, problem, answers)


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_heads_are_binary_runs_side_by_side(name: str, n_classes: int) -> None:
    problem, binary = _problem(name, 1e-9), get_method(name).server
    server = OneVsRestServer(binary, n_heads(n_classes))
    state = server.init(problem)
    features, classes = _data(n_classes)
    alone: list[Any] = [binary.init(problem) for _ in range(server.n_heads)]
    for _ in range(3):
        state = _round(name, server, state, problem, n_classes)
        state = server.unpack(server.pack(state))
        for k, signs in enumerate(head_labels(classes, n_classes)):
            messages = binary.messages(alone[k], problem)
            answers = {
                f"s{g}": get_method(name).site.answer(
                    SiteProblem(features[part], signs[part], SPEC), messages[f"s{g}"], problem.parameters
                )
                for g, part in enumerate(PARTS)
            }
            alone[k] = binary.step(alone[k], problem, answers)
    np.testing.assert_array_equal(server.weights(state), [binary.weights(each) for each in alone])
    certificates = [binary.certificate(each) for each in alone]
    assert server.certificate(state).upper == pytest.approx(sum(each.upper for each in certificates), rel=1e-14)
    assert server.certificate(state).lower == pytest.approx(sum(each.lower for each in certificates), rel=1e-14)
    assert all(array.shape[0] == server.n_heads for array in server.pack(state).values())


def test_a_finished_head_disturbs_nothing() -> None:
    """One head is certified long before the others: shapes stay and the sum still closes."""
    problem = _problem("level-bundle", 1e-5)
    server = OneVsRestServer(get_method("level-bundle").server, 3)
    state, shapes = server.init(problem), set()
    for _ in range(80):
        state = _round("level-bundle", server, state, problem, 3)
        shapes.add(tuple(sorted((k, v.shape[2:]) for k, v in server.pack(state).items())))
        if server.status(state, problem) is not Status.CONTINUE:
            break
    assert server.status(state, problem) is Status.CERTIFIED
    assert server.certificate(state).gap <= 1e-5
    assert len(shapes) == 1
    features, classes = _data(3)
    weights = server.weights(state)
    assert (predict_class(weights, features) == classes).mean() > 0.6
    total = sum(server.site_risks(state, problem).values()) / 3
    assert total == pytest.approx(server.certificate(state).upper, rel=1e-12)
    assert server.status(state, replace(problem, gap=0.0)) is not Status.CERTIFIED


def _assert_packed(server: OneVsRestServer, state: Any) -> None:
    for before, after in zip(state, server.unpack(server.pack(state)), strict=True):
        wanted, found = server.binary.pack(before), server.binary.pack(after)
        assert wanted.keys() == found.keys()
        for name, array in wanted.items():
            np.testing.assert_array_equal(array, found[name])


def test_heads_that_leave_out_other_cuts_are_packed() -> None:
    problem, server = _problem("drfl-admm", 1e-9), OneVsRestServer(get_method("drfl-admm").server, 4)
    state = server.init(problem)
    for _ in range(20):
        state = _round("drfl-admm", server, state, problem, 4)
        _assert_packed(server, state)
    assert len({head.evidence.cut_site.shape for head in state}) > 1


def test_a_head_that_chooses_its_phi_is_packed_beside_one_that_has_it() -> None:
    problem, server = _problem("scaff-pd-ia", 1e-9), OneVsRestServer(get_method("scaff-pd-ia").server, 4)
    state = _round("scaff-pd-ia", server, server.init(problem), problem, 4)
    for k in (0, 2):
        choosing = replace(state[k], memory=begin_choice(state[k].memory, ScaffRule().ambiguity(problem)))
        _assert_packed(server, (*state[:k], choosing, *state[k + 1 :]))


@pytest.mark.parametrize("name", ["cohort-bundle", "fdr-admm"])
def test_after_a_site_became_another_every_head_goes_on_and_bounds_nothing_by_what_it_said(name: str) -> None:
    """Also of a method that cannot forget one site: it begins anew."""
    problem, server = _problem(name, 1e-9), OneVsRestServer(get_method(name).server, 4)
    state = _round(name, server, _round(name, server, server.init(problem), problem, 4), problem, 4)
    assert np.isfinite(server.certificate(state).upper)
    after = server.anew(state, problem, 1)
    assert len(after) == 4 and server.certificate(after).upper == np.inf
    assert np.isfinite(server.certificate(_round(name, server, after, problem, 4)).upper)


def test_a_message_without_a_part_for_each_head_is_refused() -> None:
    problems = [SiteProblem(np.zeros((2, 1)), signs, SPEC) for signs in head_labels(np.array([0, 1]), 3)]
    with pytest.raises(ProblemError, match="leading axis of 3 heads"):
        answer_heads(get_method("level-bundle-plain").site, problems, {"point": np.zeros((2, 2))}, {})


def test_the_mixture_that_is_told_is_the_mean_of_the_heads() -> None:
    problem, server = _problem("level-bundle", 1e-3), OneVsRestServer(get_method("level-bundle").server, 3)
    state = server.init(problem)
    assert server.mixture_weights(state, problem) == pytest.approx({f"s{g}": 1 / 3 for g in range(3)})


class Told:
    """A binary method whose states are what is to be said of them."""

    def status(self, state: Any, problem: ServerProblem) -> Status:
        return Status(state)

    def certificate(self, state: Any) -> Certificate:
        return Certificate(1.0, 0.5)

    def carried_proof(self, state: Any, problem: ServerProblem) -> Any:
        return state

    def contradictions(self, state: Any, problem: ServerProblem, answers: Any) -> Any:
        return state


@pytest.mark.parametrize(("heads", "whole"), [
    ((Status.STALLED, Status.STALLED), Status.STALLED), ((Status.CERTIFIED, Status.STALLED), Status.STALLED),
    ((Status.CRITICAL, Status.STALLED), Status.STALLED), ((Status.CERTIFIED, Status.CRITICAL), Status.CRITICAL),
    ((Status.STALLED, Status.CONTINUE), Status.CONTINUE), ((Status.CERTIFIED, Status.CERTIFIED), Status.CONTINUE),
])
def test_heads_end_together_where_none_goes_on(heads: tuple[Status, ...], whole: Status) -> None:
    server, problem = OneVsRestServer(cast(Any, Told()), 2), _problem("level-bundle", 1e-3)
    assert server.status(heads, problem) is whole
    assert server.status(heads, replace(problem, gap=0.5)) is Status.CERTIFIED, "the bounds of the sum are near enough"


def test_proofs_are_there_of_every_head_or_of_none_and_the_first_contradiction_is_told() -> None:
    server, problem = OneVsRestServer(cast(Any, Told()), 2), _problem("level-bundle", 1e-3)
    assert server.carried_proofs(("one", "two"), problem) == ("one", "two")
    assert server.carried_proofs(("one", None), problem) == ()
    assert server.contradictions(({}, {"a": 2}), problem, {}) == {"a": 2}
    assert server.contradictions(({"a": 1}, {"a": 2, "b": 3}), problem, {}) == {"a": 1, "b": 3}


class AsksLate:
    """A binary half whose state is the set of sites that it is to ask next."""

    def asks_next(self, state: set[str], problem: ServerProblem) -> set[str]:
        return state

    def _none(self, *given: Any) -> Any:
        raise NotImplementedError

    open_rounds = away = told_rounds = step_late = _none


def test_a_site_is_asked_next_where_any_head_wants_it() -> None:
    server = OneVsRestServer(cast(Any, AsksLate()), 3)
    assert server.answers_late and not OneVsRestServer(get_method("level-bundle").server, 3).answers_late
    problem = _problem("level-bundle", 1e-3)
    for heads in (({"s0"}, {"s1"}, set[str]()), (set[str](), {"s1"}, {"s0", "s1"})):
        assert server.asks_next(heads, problem) == {"s0", "s1"}
    assert server.asks_next((set[str](),) * 3, problem) == set()


def test_who_lies_at_the_end_about_any_head_is_named_with_the_first_of_them() -> None:
    """A plant whose risk of the first class cannot be true is no better for a true one of the last."""

    class Known:
        def false_ends(self, state: Any, problem: ServerProblem, weights: Any, risks: Any) -> Any:
            return {site: (float(weights[0]), risk) for site, risk in risks.items() if risk < state}

    server, problem = OneVsRestServer(cast(Any, Known()), 3), _problem("level-bundle", 1e-3)
    risks = {"a": np.array([0.1, 0.9, 0.9]), "b": np.array([0.9, 0.2, 0.3]), "c": np.full(3, 0.9)}
    weights = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    assert server.false_ends((0.5, 0.5, 0.5), problem, weights, risks) == {"a": (1.0, 0.1), "b": (2.0, 0.2)}
