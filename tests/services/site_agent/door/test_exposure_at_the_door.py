"""The door asks what an answer would isolate before it leaves, and the ledger and the command say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.worst_case.risk import site_risk
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import SiteRefusal, SiteUpdate
from services.site_agent.cli import main
from services.site_agent.rules.policy import REASONS, SitePolicy
from services.site_agent.vault.isolation.guard import VaultGuard
from services.site_agent.vault.isolation.other_versions import OtherVersions
from services.site_agent.vault.records.told_models import ISOLATING
from tests.ledgers import verified

KINDS: Any = ("join", "round", "evaluate")
PLAIN = "level-bundle-plain"
FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})


def rules(**limits: Any) -> SitePolicy:
    methods = (PLAIN, "fedavg", "cohort-bundle")
    return SitePolicy(methods=methods, asset_types=("pump",), messages=KINDS, reveal=("each site",), **limits)


def sweep(site: Any, thresholds: np.ndarray, **changes: Any) -> list[SiteUpdate | SiteRefusal]:
    """Questions along one feature, as one who wants single rows asks them: the answers' differences are rows."""
    return [
        site.ask("round", round=number, method=PLAIN, spec=FIXED,
                 arrays={"point": np.array([[40.0, 0.0, 0.0, -40.0 * threshold]])}, **changes)
        for number, threshold in enumerate(thresholds, start=1)
    ]


def test_an_oem_that_asks_for_rows_gets_answers_that_have_none(make_site: Any) -> None:
    site = make_site(policy=rules())
    answers = sweep(site, np.linspace(0.3, 0.8, 200))
    assert all(isinstance(answer, SiteUpdate) for answer in answers)
    figures = [entry["exposure"] for entry in verified(site.folder / "ledger.jsonl") if entry["message"] == "update"]
    assert figures[-1]["by_differences"] == 0 and figures[-1]["vectors"] > 5
    assert not found_in(answers, site.door._vault.current().train.features)
    problem = site.door._answers._kept[2].problems[0]
    moved, random = 0, np.random.default_rng(0)
    for threshold, answer in zip(np.linspace(0.3, 0.8, 200), answers, strict=True):
        said, asked = {name: array[0] for name, array in answer.arrays.items()}, np.array([40.0, 0.0, 0.0, 0.0])
        asked[-1] = -40.0 * threshold
        assert said["risk"] == site_risk(asked, problem).value, "the risk is the exact one"
        moved += said["cut_height"] < said["risk"] - 1e-9
        for other in random.normal(size=(3, 4)) * [40.0, 5.0, 5.0, 40.0]:
            norm = np.linalg.norm(other[:3]) - np.linalg.norm(asked[:3])
            below = said["cut_height"] + said["slope"] @ (other - asked) + said["norm_weight"] * norm
            assert below <= site_risk(other, problem).value + 1e-10
    assert 5 <= moved < 200


def found_in(answers: list[Any], rows: np.ndarray) -> set[int]:
    """Rows that are the difference of two slopes."""
    slopes = [answer.arrays["slope"][0] for answer in answers if isinstance(answer, SiteUpdate)]
    found = set[int]()
    for number, first in enumerate(slopes):
        for second in slopes[:number]:
            gap = (first - second)[:3]
            if np.abs(gap).max() > 1e-9:
                cosine = np.abs(rows @ gap) / np.linalg.norm(gap) / np.linalg.norm(rows, axis=1)
                found.update(np.flatnonzero(cosine > 1 - 1e-10).tolist())
    return found


@pytest.mark.parametrize("asleep", [False, True])
def test_a_row_that_comes_between_two_runs_is_in_no_difference_of_their_answers(
    asleep: bool, make_site: Any, make_table: Any, write_csv: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asleep:
        monkeypatch.setattr(OtherVersions, "pairs", lambda *_: set())
        monkeypatch.setattr(OtherVersions, "differences", lambda *_: set())
    header, *rows = make_table(60)
    table = [[*header, "part"], *([*row, "test" if row[-1] == "leak" and place < 20 else "train"]
                                  for place, row in enumerate(rows))]
    site = make_site(table, policy=rules(), split_column="part")
    before = sweep(site, np.linspace(0.3, 0.8, 12))
    write_csv([*table, [47.5, 2.25, 1.125, "leak", "train"]], "site/data.csv")
    after = sweep(site, np.linspace(0.3, 0.8, 12), run_id="b" * 32)
    assert all(isinstance(answer, SiteUpdate) for answer in (*before, *after))
    features = site.door._vault.current().train.features
    count, found = len(features), set[int]()
    for first in before:
        for second in after:
            gap = (count * second.arrays["slope"][0] - (count - 1) * first.arrays["slope"][0])[:3]
            cosine = np.abs(features @ gap) / np.linalg.norm(features, axis=1) / max(float(np.linalg.norm(gap)), 1e-9)
            found.update(np.flatnonzero(cosine > 1 - 1e-10).tolist())
    assert (count - 1 in found) if asleep else not found


def test_without_another_answer_an_oem_is_refused_before_it_has_rows(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VaultGuard, "_first", lambda self, key, candidate, vectors: candidate(0, None))
    site = make_site(policy=rules(exposure_limit=0.2))
    answers = sweep(site, np.linspace(0.3, 0.8, 200))
    refused = [answer for answer in answers if isinstance(answer, SiteRefusal)]
    first, later = refused[:ISOLATING], refused[ISOLATING:]
    assert {(each.code, each.reason) for each in first} == {("exposure_limit", REASONS["exposure_limit"])}
    assert {each.code for each in later} == {"budget_spent"}, "refusals would say where a row lies"
    entries = verified(site.folder / "ledger.jsonl")
    figures = [entry["exposure"] for entry in entries if entry["message"] == "update"]
    assert len(figures) + len(refused) == 200
    assert 5 <= figures[-1]["by_differences"] <= 0.2 * figures[-1]["rows"]
    assert all("exposure" not in entry for entry in entries if entry["message"] == "refusal")
    found = found_in(answers, site.door._vault.current().train.features)
    assert 0 < len(found) <= figures[-1]["by_differences"], "what is found is what the figure said"


def test_a_repeated_question_gets_the_same_bytes_whatever_left_since_and_after_a_restart(make_site: Any) -> None:
    site, thresholds = make_site(policy=rules()), np.linspace(0.3, 0.8, 60)
    first = sweep(site, thresholds)
    again = sweep(site, thresholds, run_id="b" * 32)
    site.ledger.close()
    site.__post_init__()
    restarted = sweep(site, thresholds[::-1], run_id="c" * 32)[::-1]
    for one, two, three in zip(first, again, restarted, strict=True):
        for name, array in one.arrays.items():
            assert array.tobytes() == two.arrays[name].tobytes() == three.arrays[name].tobytes()
    figures = [entry["exposure"] for entry in verified(site.folder / "ledger.jsonl") if entry["message"] == "update"]
    assert figures[59] == figures[-1]


def test_the_figures_outlive_the_agent(make_site: Any, tmp_path: Path) -> None:
    site = make_site(policy=rules())
    sweep(site, np.linspace(0.3, 0.6, 10))
    before = verified(site.folder / "ledger.jsonl")[-1]["exposure"]
    site.ledger.close()
    site.__post_init__()
    sweep(site, np.linspace(0.3, 0.6, 10)[:1], run_id="b" * 32)
    assert verified(site.folder / "ledger.jsonl")[-1]["exposure"] == before, "the same question on the same rows"
    data = site.source.path
    lines = data.read_text().splitlines()
    data.write_text("\n".join(lines[:-10]) + "\n")
    sweep(site, np.array([0.4]), run_id="c" * 32)
    after = verified(site.folder / "ledger.jsonl")[-1]["exposure"]
    assert after["vectors"] == 1 < before["vectors"]


@pytest.mark.parametrize(
    ("changes", "arrays", "code"),
    [
        ({"steepness_limit": 1.0}, {"point": np.array([[300.0, 0.0, 0.0, 0.0]])}, "question_refused"),
        ({"max_answers_per_run": 1}, {"point": np.zeros((1, 4))}, "budget_spent"),
        ({"nearness_limit": 1e-7}, {"point": np.array([[40.0, 0.0, 0.0, -20.0 + 1e-11]])}, "question_refused"),
    ],
)
def test_what_has_no_honest_purpose_is_refused(make_site: Any, changes: Any, arrays: Any, code: str) -> None:
    for policy, expected in ((rules(**changes), code), (rules(nearness_limit=0.0), None)):
        site = make_site(policy=policy, folder=code + str(expected))
        assert isinstance(sweep(site, np.array([0.5]))[0], SiteUpdate)
        answer = site.ask("round", round=2, method=PLAIN, spec=FIXED, arrays=arrays)
        assert (answer.code if isinstance(answer, SiteRefusal) else None) == expected


def test_every_question_of_a_message_may_be_too_steep(make_site: Any) -> None:
    site = make_site(policy=rules(steepness_limit=1.0))
    points = np.zeros((1, 2, 4))
    asked = {
        "points": points, "centre": points, "penalty": np.zeros((1, 2)), "counted": np.zeros((1, 2, 0)),
        "of_norm": points, "sides": np.zeros((1, 2, 3)),
    }
    question = {"method": "cohort-bundle", "spec": FIXED, "parameters": {"questions": 2.0}}
    assert isinstance(site.ask("round", arrays=asked, **question), SiteUpdate)
    asked["points"] = points.copy()
    asked["points"][0, 1, 0] = 300.0
    answer = site.ask("round", round=2, arrays=asked, **question)
    assert isinstance(answer, SiteRefusal) and answer.code == "question_refused"


def test_no_weights_are_too_steep_where_there_is_no_ball(make_site: Any) -> None:
    site = make_site(policy=rules(steepness_limit=1.0))
    scalars = {"step_size": 0.0, "draw": 0.0, "snapshot_step": 0.0}
    arrays = {"point": np.array([[300.0, 0.0, 0.0, 0.0]]), "correction": np.zeros((1, 4))}
    asked = arrays | {name: np.array([value]) for name, value in scalars.items()}
    assert isinstance(site.ask("round", method="fedavg", spec=FIXED, arrays=asked), SiteUpdate)


def test_the_command_says_it(make_site: Any, asset_type_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = make_site(policy=rules())
    home = site.folder / "home"
    data = ["--asset-type", str(asset_type_file), "--data", str(site.source.path)]
    assert main(["init", "--site-id", "plant-1", "--dir", str(home), *data]) == 0
    config = ["--config", str(home / "site.toml")]
    capsys.readouterr()
    assert main(["exposure", *config]) == 0
    assert capsys.readouterr().out == "Nothing has been answered about the data yet.\n"
    sweep(site, np.linspace(0.3, 0.6, 10))
    site.door.close()
    (home / "exposure.sqlite").write_bytes((site.folder / "exposure.sqlite").read_bytes())
    assert main(["exposure", "--json", *config]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["answers"], summary["runs"]) == (10, 1) and summary["by_differences"] == 0 < summary["vectors"]
    assert main(["exposure", *config]) == 0
    said = capsys.readouterr().out
    assert f"{summary['by_pairs']} of {summary['rows']} rows can be read off exactly from one answer" in said
    assert main(["ledger", "show", str(site.folder / "ledger.jsonl"), "--last", "1"]) == 0
    assert f"isolated {summary['by_differences']} of {summary['rows']} rows" in capsys.readouterr().out
    (home / "exposure.sqlite").write_bytes(b"no record at all" * 100)
    assert main(["exposure", *config]) == 1
    assert "the record of what was answered" in capsys.readouterr().err
