"""Rounds through the door: training converges, sizes tell nothing, and no value of a row is in what leaves."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays
from models.methods.catalogue import METHODS, get_method
from models.methods.protocol import Method
from models.methods.site_answers import ProxCutSite
from models.one_vs_rest import OneVsRestServer
from models.problem import ServerProblem, SiteProblem, SiteTerms, Status
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.wire.codec import decode, encode
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.answers import local_solve
from services.site_agent.rules.policy import SitePolicy

Make = Callable[..., Any]
ALL = SitePolicy(
    methods=tuple(METHODS), asset_types=("pump",), messages=("join", "round", "evaluate"), exposure_limit=1.0,
    reveal=("each site",),
)
"""Answers that a plant cannot account for, in a box or of a half of the tests' own, count as all rows."""


def server_of(method: str, sites: list[Any], spec: TrainingSpec) -> tuple[OneVsRestServer, ServerProblem]:
    terms = []
    for site in sites:
        joined = site.ask("join", method=method, spec=spec)
        terms.append(
            SiteTerms(site.folder.name, 1 / len(sites), float(joined.arrays["radius"]), spec.label_flip_cost)
        )
    problem = ServerProblem(
        n_features=3, sites=tuple(terms), transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept,
        parameters=get_method(method).parameters,
    )
    return OneVsRestServer(get_method(method).server, sites[0].asset_type.heads("classification")), problem


def one_round(
    server: OneVsRestServer, problem: ServerProblem, state: Any, number: int, sites: list[Any], **task: Any
) -> Any:
    messages = server.messages(state, problem)
    answers = {}
    for site in sites:
        update = site.ask("round", round=number, arrays=messages[site.folder.name], **task)
        assert isinstance(update, SiteUpdate), update
        answers[site.folder.name] = update.arrays
    return server.step(state, problem, answers)


@pytest.mark.parametrize("support", ["unbounded", "sensor_ranges"])
def test_two_sites_train_to_a_certified_model_that_separates(
    make_site: Make, make_table: Make, three_classes: AssetType, support: str
) -> None:
    classes = ("healthy", "leak", "worn")
    sites = [
        make_site(
            make_table(n, classes, seed), folder=f"s{seed}", asset_type=three_classes,
            **({} if support == "unbounded" else {"policy": ALL}),
        )
        for n, seed in ((90, 1), (150, 2))
    ]
    spec = TrainingSpec(support=support, transport_norm="l1")
    server, problem = server_of("level-bundle", sites, spec)
    state = server.init(problem)
    number = 0
    while server.status(state, problem) is Status.CONTINUE and number < 80:
        number += 1
        state = one_round(server, problem, state, number, sites, spec=spec)
    assert server.status(state, problem) is Status.CERTIFIED
    evaluated = sites[0].ask("evaluate", spec=spec, arrays={"weights": server.weights(state)})
    counts = evaluated.arrays["confusion"]
    assert np.trace(counts) / counts.sum() > 0.85
    weights = {"weights": server.weights(state)}
    risks = [site.ask("evaluate", spec=spec, arrays=weights).arrays["risk"] for site in sites]
    np.testing.assert_allclose(np.mean(risks, axis=0).sum(), server.certificate(state).upper, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_what_its_server_half_admits(make_site: Make, method: str) -> None:
    site = make_site(policy=ALL, folder="s")
    spec = TrainingSpec()
    server, problem = server_of(method, [site], spec)
    state = one_round(server, problem, server.init(problem), 1, [site], method=method)
    one_round(server, problem, state, 2, [site], method=method)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_closes_its_certificate_over_three_classes(
    make_site: Make, make_table: Make, three_classes: AssetType, method: str
) -> None:
    rows = make_table(90, ("healthy", "leak", "worn"))
    site = make_site(rows, policy=ALL, folder="s", asset_type=three_classes)
    server, problem = server_of(method, [site], TrainingSpec())
    state, gaps = server.init(problem), []
    for number in range(1, 13):
        state = one_round(server, problem, state, number, [site], method=method)
        gaps.append(server.certificate(state).gap)
    assert server.weights(state).shape == (3, 4)
    assert gaps[-1] < min(1.0, gaps[0])
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(gaps))


@pytest.fixture(scope="module")
def few_and_many(make_table: Make) -> dict[int, list[list[Any]]]:
    return {n_rows: make_table(n_rows) for n_rows in (100, 10_000)}


@pytest.mark.parametrize("method", METHODS)
def test_a_messages_size_is_the_same_for_100_and_for_10000_rows(
    make_site: Make, few_and_many: dict[int, list[list[Any]]], method: str
) -> None:
    sizes = []
    for n_rows, rows in few_and_many.items():
        site = make_site(rows, policy=ALL, folder=f"s{n_rows}")
        server, problem = server_of(method, [site], TrainingSpec())
        message = server.messages(server.init(problem), problem)[f"s{n_rows}"]
        tasks = [
            site.task("join", method=method), site.task("round", method=method, arrays=message),
            site.task("evaluate", method=method, arrays={"weights": np.ones((1, 4))}),
        ]
        frames = [site.door.answer(encode(task)) for task in tasks]
        assert all(isinstance(decode(frame, 1 << 20), SiteUpdate) for frame in frames)
        sizes.append([len(frame) for frame in frames])
    assert sizes[0] == sizes[1]


def test_no_value_and_no_text_of_a_row_is_in_what_leaves(make_site: Make, make_table: Make, tmp_path: Path) -> None:
    """A canary number that is inside its sensor range, so that it does enter training, and a canary label's word."""
    canary, word = 739158264013.0, "CANARY-739158264013"
    text = (tmp_path / "asset_type.toml").read_text().replace("high = 100.0", "high = 1e12")
    (tmp_path / "wide.toml").write_text(text)
    asset_type = AssetType.from_toml(tmp_path / "wide.toml")
    rows = make_table(60)
    for row in rows[1:]:
        row[3] = word if row[3] == "leak" else row[3]
    rows[5][0] = canary
    site = make_site(rows, asset_type=asset_type, policy=ALL, folder="s", labels={word: "leak"})
    frames = []
    for method in METHODS:
        server, problem = server_of(method, [site], TrainingSpec())
        message = server.messages(server.init(problem), problem)["s"]
        tasks = [
            site.task("join", method=method), site.task("round", method=method, arrays=message),
            site.task("evaluate", method=method, arrays={"weights": np.ones((1, 4))}),
        ]
        frames += [site.door.answer(encode(task)) for task in tasks]
    frames.append((site.folder / "ledger.jsonl").read_bytes())
    for forbidden in (struct.pack("<d", canary), struct.pack("<d", canary / 1e12), word.encode(), b"739158264013"):
        assert not any(forbidden in frame for frame in frames)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"arrays": {}}, "bad_task"),
        ({"arrays": {"point": np.zeros(4)}}, "bad_task"),
        ({"arrays": {"point": np.zeros((2, 4))}}, "bad_task"),
        ({"arrays": {"point": np.zeros((1, 7))}}, "bad_task"),
        ({"arrays": {"point": np.full((1, 4), np.inf)}}, "bad_task"),
        ({"arrays": {"point": np.zeros((1, 4))}, "parameters": {"speed": 1.0}}, "bad_task"),
        ({"arrays": {"point": np.zeros((1, 4))}, "parameters": {"level": 7.0}}, "bad_task"),
        ({"arrays": {"point": np.zeros((1, 4))}, "method": "level-bundle-of-nobody"}, "bad_task"),
    ],
)
def test_a_message_that_does_not_fit_the_method_is_refused(make_site: Make, changes: Any, code: str) -> None:
    policy = ALL.model_copy(update={"methods": (*METHODS, "level-bundle-of-nobody")})
    assert make_site(policy=policy).refusal_code("round", **changes) == code


class RowsSite:
    """A site half that would send row-level arrays out, by mistake or on purpose."""

    def answer(self, problem: Any, message: Arrays, parameters: Any) -> dict[str, Any]:
        return {"risk": np.array(0.0), "subgradient": problem.features[:, 0]}


@dataclass
class NotFiniteSite:
    """All that is due, in its shape, but for one number."""

    name: str
    value: float

    def answer(self, problem: Any, message: Arrays, parameters: Any) -> dict[str, Any]:
        answer = {name: np.zeros(shape) for name, shape in ProxCutSite().shapes(4).items()}
        answer[self.name].flat[-1] = self.value
        return answer


class NotingSite:
    """A site half that notes its parameters."""

    def __init__(self) -> None:
        self.noted: list[Mapping[str, float]] = []

    def answer(self, problem: Any, message: Arrays, parameters: Any) -> dict[str, Any]:
        self.noted.append(parameters)
        return dict(SOUND.site.answer(problem, message, parameters))


SOUND = get_method("level-bundle-plain")
PROXIMAL = get_method("level-bundle")
POINT = {"point": np.zeros((1, 4))}


def put_half(monkeypatch: pytest.MonkeyPatch, half: Any, sound: Method = SOUND) -> None:
    """Let another site half answer for the method level-bundle, to the server half of a sound method."""
    put = Method("level-bundle", half, sound.server, sound.parameters, "", "")
    monkeypatch.setattr("models.methods.catalogue.METHODS", {"level-bundle": put})


def test_the_guard_lets_whole_answers_pass(make_site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = get_method("level-bundle")
    whole = Method("level-bundle", NotFiniteSite("slope", 1.0), sound.server, sound.parameters, "", "")
    monkeypatch.setattr("models.methods.catalogue.METHODS", {"level-bundle": whole})
    assert isinstance(make_site(policy=ALL).ask("round", arrays={"point": np.zeros((1, 4))}), SiteUpdate)


@pytest.mark.parametrize(("half", "said"), [(RowsSite(), "the answer has the shapes"), *(
    (NotFiniteSite(name, value), f"the answer's array {name} is not finite")
    for name in ("risk", "slope") for value in (np.nan, np.inf, -np.inf)
)])
def test_an_answer_that_has_not_the_models_shape_or_is_not_finite_does_not_leave(
    make_site: Make, monkeypatch: pytest.MonkeyPatch, half: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    put_half(monkeypatch, half, PROXIMAL)
    assert make_site().refusal_code("round", arrays=POINT) == "internal_error"
    assert said in caplog.text


def test_no_step_goes_by_fewer_rows_than_the_sites_own_policy_says(
    make_site: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = NotingSite()
    put_half(monkeypatch, half)
    site = make_site(policy=ALL.model_copy(update={"min_samples": 33}))
    assert isinstance(site.ask("round", arrays=POINT, parameters={}), SiteUpdate)
    assert [parameters["least_rows"] for parameters in half.noted] == [33.0]


def test_a_message_that_is_not_finite_does_not_reach_the_method(
    make_site: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = NotingSite()
    put_half(monkeypatch, half)
    for value in (np.nan, np.inf):
        site, point = make_site(folder=str(value)), np.full((1, 4), value)
        assert site.refusal_code("round", arrays={"point": point}) == "bad_task"
    assert half.noted == []


def test_an_answer_is_that_of_the_rows_and_the_problem_that_are_asked_about(
    make_site: Make, make_table: Make, write_csv: Make
) -> None:
    """What a site keeps between tasks is never another run's rows, nor another spec's ball."""

    def risk(site: Any, radius: float, **task: Any) -> float:
        spec = TrainingSpec(radius=RadiusRule(rule="fixed", value=radius))
        answer = site.ask("evaluate", spec=spec, arrays={"weights": np.array([[1.0, -2.0, 0.5, 0.1]])}, **task)
        return float(answer.arrays["risk"][0])

    site, grown = make_site(make_table(100)), make_site(make_table(400, seed=1), folder="grown")
    first = risk(site, 0.01)
    assert risk(site, 0.5) > first + 0.1
    assert risk(site, 0.01) == first
    write_csv(make_table(400, seed=1), "site/data.csv")
    assert risk(site, 0.01, run_id="e" * 32) == risk(grown, 0.01) != first


def test_the_policy_limits_the_rounds_of_a_run_across_restarts(make_site: Make) -> None:
    site = make_site(policy=ALL.model_copy(update={"max_rounds_per_run": 2}))
    message = {"point": np.zeros((1, 4)), "centre": np.zeros((1, 4)), "penalty": np.ones(1)}
    assert isinstance(site.ask("round", round=1, arrays=message), SiteUpdate)
    assert isinstance(site.ask("round", round=1, arrays=message), SiteUpdate)
    site.ledger.close()
    site.__post_init__()
    assert site.refusal_code("round", round=1, arrays=message) == "message_not_allowed"
    assert isinstance(site.ask("join"), SiteUpdate)
    assert isinstance(site.ask("round", round=1, arrays=message, run_id="d" * 32), SiteUpdate)


def test_a_run_keeps_its_rows_while_the_file_grows(make_site: Make, make_table: Make, write_csv: Make) -> None:
    site = make_site(make_table(100))
    frame = encode(site.task("round", arrays={"point": np.ones((1, 4))}))
    before = site.door.answer(frame)
    write_csv(make_table(400), "site/data.csv")
    assert site.door.answer(frame) == before
    other = site.ask("join", run_id="e" * 32)
    assert other.arrays["n_samples"] == 300


def test_shapes_are_those_of_the_model_whatever_the_spec(asset_type: AssetType) -> None:
    spec = local_solve.robust_spec(TrainingSpec(fit_intercept=False), np.zeros((50, 7)), np.zeros(50), asset_type)
    first = SiteProblem(np.zeros((50, 7)), np.ones(50), spec)
    method, several = get_method("fdr-admm"), get_method("cohort-bundle")
    assert local_solve._stated_shapes(method, method.parameters, first, 3)["slope"] == (3, 7)
    asked = {**several.parameters, "questions": 2.0}
    assert local_solve._stated_shapes(several, asked, first, 3)["slope"] == (3, 2, 7)
