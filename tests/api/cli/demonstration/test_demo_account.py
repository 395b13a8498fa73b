"""What the demo tells of its run, from the API's answers, and how long it waits for whom."""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import demo
from api.cli.demonstration.demo_account import Account, account_of_fairness, account_of_sites, render
from services.contracts.errors import BallastError

INDICES = {"relative_unfairness": 3.25, "gini": 0.125, "worst_site": 0.5, "mean": 0.25, "palma": 7.0}


def answer(site: str, status: str = "accepted", came: int = 1000, went: int = 7) -> dict[str, Any]:
    return {"site_id": site, "status": status, "bytes_in": came, "bytes_out": went}


ROUNDS = [{"answers": [answer("a", came=1024), answer("b", came=10)]},
          {"answers": [answer("a", "rejected", came=4096), answer("b", "late", came=0)]}]
VERSION = {"sites": [{"site_id": "b", "f1": None}, {"site_id": "a", "f1": 0.875}]}


def account(**changes: Any) -> Account:
    found = {"fault_class": "leak", "severity": 2, "robustness_radius": 0.1254,
             "contributing_sensors": [{"feature": name} for name in ("p", "q", "r", "s")]}
    fields: dict[str, Any] = {
        "scenario": "nominal", "reveal": "sums", "rounds": 40, "certified_gap": 8.25e-4, "worst_case_risk": 0.5,
        "f1": 0.9375, "sites": account_of_sites(VERSION, ROUNDS),
        "fairness": account_of_fairness({"indices": [INDICES]}),
        "diagnosis": found, "model": "pump-leak", "model_version": "1", "run_id": "r", "outcome": "champion",
        "mlflow_run_id": "m", "prefect_flow_run_id": "p", "seconds": 61.0, "training_seconds": 4.25,
    }
    return Account(**fields | changes)


def test_a_plant_is_told_what_it_answered_and_what_left_it() -> None:
    """What came in at the OEM left the plant, refused or not; an update is an answer that counted."""
    first, second = account_of_sites(VERSION, ROUNDS)
    assert (first.site_id, first.f1, first.n_updates, first.bytes_out) == ("b", None, 1, 10)
    assert (second.site_id, second.f1, second.n_updates, second.bytes_out) == ("a", 0.875, 1, 5120)


def test_fairness_is_that_of_the_first_indices() -> None:
    found = account_of_fairness({"indices": [INDICES, dict.fromkeys(INDICES, 9.0)]})
    assert found == {name: value for name, value in INDICES.items() if name != "palma"}


def test_the_account_is_a_fact_a_line() -> None:
    lines = [line for line in render(account()).splitlines() if line]
    assert {line[:22].strip(): line[22:] for line in lines} == {
        "rounds": "40 (in 4.2 s)", "the OEM saw": "sums over the plants", "worst-case risk": "0.5000",
        "certified gap": "8.2e-04: no linear model does better by more", "F-1, held out": "0.938 over all plants",
        "b": "none   1 updates, 0.0 KiB left the plant", "a": "0.875   1 updates, 5.0 KiB left the plant",
        "fairness": "the worst fifth of the plants has 3.2 times the loss of the best, Gini 0.12",
        "registry": "champion", "a fresh measurement": "leak (severity 2), robustness radius 0.125",
        "because of": "p, q, r", "the whole demo": "61 s",
    }
    other = render(account(reveal="each site", worst_case_risk=None))
    assert "the answers of each plant" in other and "not known" in other
    endless = account().diagnosis | {"robustness_radius": None}
    assert "leak (severity 2), robustness radius without end" in render(account(diagnosis=endless))


class Answers:
    """An API that answers from a list, the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[tuple[str, str]] = []
        self._answers = itertools.chain(answers, itertools.repeat(answers[-1]))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append((method, path))
        return next(self._answers)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Time that passes by sleeping alone; what was slept."""
    slept: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(demo, "time", SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept)))
        yield slept


def sites(**seen: str | None) -> dict[str, Any]:
    return {"sites": [{"site_id": site, "last_seen": when} for site, when in seen.items()]}


def test_all_plants_have_to_say_hello(quick: list[float]) -> None:
    api: Any = Answers(sites(a="2031", b=None), sites(a="2031", b=None), sites(a="2031", b="2031", c=None))
    demo.wait_for_sites(api, {"a", "b"})
    assert len(quick) == 2
    api = Answers(sites(a="2031", b=None))
    with pytest.raises(BallastError, match="no hello from b, c in 60 s"):
        demo.wait_for_sites(api, {"a", "b", "c"})
    assert 59.0 < sum(quick) - 0.4 < 61.0


def run(status: str, rounds: int = 0, gap: float | str | None = None) -> dict[str, Any]:
    return {"status": status, "rounds": rounds, "gap": gap, "reason": f"{status} for a reason"}


def test_a_run_is_waited_for_with_its_gap_every_ten_rounds(
    quick: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    api: Any = Answers(
        run("pending"), run("running", 9, 0.5), run("running", 10, "Infinity"), run("running", 19, 0.25),
        run("running", 23, 0.125), run("completed", 24, 0.001),
    )
    assert demo.wait_for_run(api, "ab")["rounds"] == 24
    assert api.asked == [("GET", "/v1/runs/ab")] * 6
    assert capsys.readouterr().out == "  round 10: certified gap inf\n  round 23: certified gap 1.2e-01\n"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_run_that_does_not_complete_is_told_with_its_reason(quick: list[float], status: str) -> None:
    api: Any = Answers(run("running"), run(status))
    with pytest.raises(BallastError, match=f"the run {status}: {status} for a reason"):
        demo.wait_for_run(api, "ab")
    api = Answers(run("running"))
    with pytest.raises(BallastError, match="run ab did not end in 300 s"):
        demo.wait_for_run(api, "ab")


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """The demo without its processes; the training is what is given."""
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def go(trained: Callable[[], Account], *words: str) -> int:
        monkeypatch.setattr(demo, "train_and_diagnose", lambda *_: trained())
        parser = argparse.ArgumentParser()
        demo.add_arguments(parser)
        try:
            return demo.run(parser.parse_args(["--home", str(tmp_path / "demo"), *words]))
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    return go


def test_the_account_is_written_and_who_asks_for_the_end_gets_it(
    stubbed: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (tmp_path / "demo" / "account.json", tmp_path / "account.json"):  # also where the demo makes the folder
        assert stubbed(account, "--exit", "--json", str(file)) == 0
        assert Account.model_validate(json.loads(file.read_text())) == account()
    assert "token" not in capsys.readouterr().out


def test_without_that_it_stays_and_says_where_the_console_is(
    stubbed: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trained() -> Account:
        (tmp_path / "demo" / "token").write_text("blst_secret\n")
        return account()

    told = threading.Event()
    told.set()
    monkeypatch.setattr(demo, "end_when_told", lambda: told)
    assert stubbed(trained) == 0, "a diagnosis came out"
    said = capsys.readouterr().out
    assert "/sign-in#token=blst_secret\n" in said and said.endswith("stopped\n")


def test_a_demo_that_is_stopped_in_the_midst_did_not_do_what_it_should(
    stubbed: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def trained() -> Account:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("went on")

    assert stubbed(trained, "--exit") == 1
    assert capsys.readouterr().out.endswith("stopped\n")
