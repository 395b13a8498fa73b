"""What rounds add to a packed state, put together again, is the packed state; and no more than a round is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray
from models.cuts.evidence import GROWING, Evidence, with_answers
from models.methods.bundle.level import BundleState
from models.methods.catalogue import get_method
from models.methods.packed_change import PackedChange
from models.one_vs_rest import OneVsRestServer
from models.problem import ServerProblem, SiteTerms

D, SITES = 3, 4
PROBLEM = ServerProblem(D, tuple(SiteTerms(f"s{g}", 1 / SITES, 0.1, 1.0) for g in range(SITES)), "l2", False)


def grown(state: Any, seed: int, swing: bool, away: int) -> Any:
    """Heads after a round of drawn answers; the last ``away`` sites did not answer."""
    random, heads = np.random.default_rng(seed), []
    for head in state:
        names = [each.site_id for each in PROBLEM.sites][: head.evidence.risks.shape[1] - away]
        answers = {}
        for name in names:
            answers[name] = {"risk": random.random(), "cut_height": random.random(), "slope": random.normal(size=D),
                             "norm_weight": random.random()}
            if swing:
                answers[name]["swing"] = random.random(D)
        problem = replace(PROBLEM, sites=tuple(replace(PROBLEM.sites[g], weight=1 / head.evidence.risks.shape[1])
                                               for g in range(head.evidence.risks.shape[1])))
        evidence = with_answers(head.evidence, problem, random.normal(size=D), answers)
        heads.append(replace(head, evidence=evidence, point=random.normal(size=D)))
    return tuple(heads)


def put(known: dict[str, FloatArray], change: PackedChange) -> dict[str, FloatArray]:
    """What a store has after a change, by an independent rule: cut at the start, then put behind."""
    found = dict(change.present)
    for name, each in change.added.items():
        old = np.moveaxis(known[name], each.axis, 0)[: each.start] if each.start else None
        rows = np.moveaxis(each.rows, each.axis, 0)
        found[name] = np.moveaxis(rows if old is None else np.concatenate([old, rows]), 0, each.axis)
        assert each.start in (0, known[name].shape[each.axis] if name in known else 0)
    return found


KINDS = st.sampled_from(["round", "fewer", "uneven"])


@settings(max_examples=60)
@given(
    heads=st.integers(1, 3), seed=st.integers(0, 2**32 - 1),
    rounds=st.lists(st.tuples(KINDS, st.booleans(), st.integers(0, 1)), max_size=7),
)
def test_the_parts_make_the_whole(heads: int, seed: int, rounds: list[tuple[str, bool, int]]) -> None:
    server = OneVsRestServer(get_method("level-bundle").server, heads)
    state: Any = server.init(PROBLEM)
    before, stored = None, dict[str, FloatArray]()
    for number, (kind, swing, away) in enumerate(rounds):
        if kind == "fewer" and state[0].evidence.risks.shape[1] > 2:
            state = tuple(replace(head, evidence=head.evidence.of_sites([1, 0])) for head in state)
        state = grown(state, seed + number, swing, away)
        if kind == "uneven":  # a head that left out a cut, as AD-LPMM's may
            last = state[-1].evidence
            keep = np.arange(last.cut_site.shape[0]) != 0
            state = (*state[:-1], replace(state[-1], evidence=last.kept_cuts(keep)))
        change = server.pack_change(before, state)
        stored, wanted = put(stored, change), server.pack(state)
        assert stored.keys() == wanted.keys()
        for name, array in wanted.items():
            assert stored[name].shape == np.shape(array), name
            assert stored[name].tobytes() == np.ascontiguousarray(array).tobytes(), name
        before = state


@pytest.mark.parametrize("heads", [1, 3])
def test_a_round_adds_what_it_brought_however_late_it_is(heads: int) -> None:
    server = OneVsRestServer(get_method("level-bundle").server, heads)
    state: Any = server.init(PROBLEM)
    sizes = []
    for number in range(12):
        before, state = state, grown(state, number, False, 0)
        change = server.pack_change(before if number else None, state)
        sizes.append(sum(each.rows.size for each in change.added.values()))
        assert not set(GROWING) & {name.partition(" of head ")[0] for name in change.present}
    assert len(set(sizes)) == 1, "a later round writes more than the first"


def test_heads_that_came_to_have_unlike_shapes_are_written_anew_each_under_its_own_name() -> None:
    """All that was there is in its place, and one head has more of it, for which there is no room in a stack."""
    server = OneVsRestServer(get_method("level-bundle").server, 2)
    before = grown(server.init(PROBLEM), 1, False, 0)
    after = grown(before, 2, False, 0)
    after = (after[0], grown(after[1:], 3, False, 0)[0])
    stored = put(put({}, server.pack_change(None, before)), server.pack_change(before, after))
    wanted = server.pack(after)
    assert stored.keys() == wanted.keys() and any(" of head 1" in name for name in wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(stored[name], array)


def test_changed_rows_are_written_anew() -> None:
    server = OneVsRestServer(get_method("level-bundle").server, 1)
    state: Any = server.init(PROBLEM)
    before = grown(grown(state, 1, False, 0), 2, False, 0)
    evidence: Evidence = before[0].evidence
    risks = evidence.risks.copy()
    risks[0, 1] = np.nan
    for other in (
        replace(evidence, risks=risks), replace(evidence, cut_offset=evidence.cut_offset + 1e-15),
        evidence.kept_cuts(np.arange(evidence.cut_site.shape[0]) != 1), evidence.of_sites([0, 2, 1, 3]),
    ):
        head: BundleState = replace(before[0], evidence=other)
        assert all(each.start == 0 for each in server.pack_change(before, (head,)).added.values())
    assert all(each.start > 0 for each in server.pack_change(before, before).added.values() if each.rows.ndim > 1)
