"""A coupling at the door: gradients in the planes' scores alone leave, accounted for; steep planes are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from models.losses.joint import Softmax
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_cut
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Kind, SiteRefusal, SiteUpdate
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.isolation.guard import VaultGuard
from tests.ledgers import verified
from tests.services.site_agent.conftest import THIRD_CLASS, TWO_CLASSES

SPEC = TrainingSpec.model_validate({"loss": "logistic", "radius": {"rule": "fixed", "value": 0.01}})
METHOD = "level-bundle"
HEADS = np.array([[1.0, -0.5, 0.2, 0.1], [0.3, 0.6, -0.8, 0.0], [-1.2, 0.1, 0.4, -0.2]])
SHAPES = {"risk": (1,), "cut_height": (1,), "slope": (1, 8), "norm_weight": (1,)}


@pytest.fixture
def asset_type_file(tmp_path: Path) -> Path:
    path = tmp_path / "asset_type.toml"
    path.write_text(TWO_CLASSES + THIRD_CLASS)
    return path


def rules(**changes: Any) -> SitePolicy:
    values = {
        "methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "reveal": ("each site",),
        "max_answers_per_run": None, "exposure_limit": 1.0,
    }
    return SitePolicy.model_validate(values | changes)


def asked(site: Any, *points: np.ndarray, heads: np.ndarray = HEADS, number: int = 1, spec: Any = SPEC) -> Any:
    arrays = {"heads": heads, **{f"point_{j}": point for j, point in enumerate(points)}}
    return site.ask("tune", round=number, method=METHOD, spec=spec, arrays=arrays, tuning={"points": len(points)})


def point(scale: float = 1.0, seed: int = 0) -> np.ndarray:
    """A coupling counted from the first class: near ``scale`` times the planes as they are."""
    found = np.hstack([np.eye(3)[1:] - np.eye(3)[0], np.zeros((2, 1))]) + 0.1 * np.random.default_rng(seed).normal(
        size=(2, 4)
    )
    return scale * np.concatenate([found[:, :-1].ravel(), found[:, -1]])[np.newaxis]


def test_what_leaves_is_loss_and_gradient_in_the_scores(make_site: Any) -> None:
    site = make_site(policy=rules())
    points = [point(seed=seed) for seed in (1, 2)]
    update = asked(site, *points)
    assert isinstance(update, SiteUpdate)
    assert {name: array.shape for name, array in update.arrays.items()} == {
        f"{name}_{j}": shape for name, shape in SHAPES.items() for j in (0, 1)
    }
    train = site.door._vault.current().train
    scores = train.features @ HEADS[:, :-1].T + HEADS[:, -1]
    problem = SiteProblem(scores, train.classes.astype(float), RobustSpec(0.0, 1.0, loss=Softmax(3)))
    for j, each in enumerate(points):
        exact = site_cut(each[0], problem)
        assert update.arrays[f"risk_{j}"].tolist() == [exact.risk]
        assert update.arrays[f"slope_{j}"].tolist() == [exact.slope.tolist()]
        assert update.arrays[f"norm_weight_{j}"].tolist() == [0.0]


def test_a_coupling_is_written_down_and_accounted_for(make_site: Any, accounts_of: Any) -> None:
    site = make_site(policy=rules())
    accounts = accounts_of(site)
    assert isinstance(asked(site, point(), point(seed=3)), SiteUpdate)
    train = site.door._vault.current().train
    assert sum(np.atleast_2d(rows).shape[0] for rows in accounts[0].rows) == 4, "a vector a plane and point"
    assert all(np.atleast_2d(rows).shape[1] == len(train) for rows in accounts[0].rows)
    splined = SPEC.model_validate({**dict(SPEC), "lift": {"kind": "spline", "segments": 2}})
    assert accounts[0].whole
    asked(site, point(), heads=np.hstack([HEADS[:, :3], HEADS]), number=2, spec=splined)
    assert not accounts[1].whole, "few rows may reach a segment"
    told = [entry for entry in verified(site.folder / "ledger.jsonl") if entry["message"] == "update"]
    assert [entry["kind"] for entry in told] == ["tune", "tune"]


def test_the_guard_chooses_what_leaves(make_site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked of each point, and what it gives in place of the gradient is what leaves."""
    site, asked_of = make_site(policy=rules()), []

    def other_cut(guard: VaultGuard, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        asked_of.append(question)
        return replace(exact, slope=np.full(8, 0.25))

    monkeypatch.setattr(VaultGuard, "choose_cut", other_cut)
    update = asked(site, point(), point(seed=3))
    assert len(set(asked_of)) == 2
    assert all((update.arrays[f"slope_{j}"] == 0.25).all() for j in (0, 1))


def test_couplings_of_steep_planes_are_refused(make_site: Any) -> None:
    site = make_site(policy=rules(steepness_limit=1.5))
    assert isinstance(asked(site, point()), SiteUpdate)
    refused = asked(site, point(), point(4000.0), number=2)
    assert isinstance(refused, SiteRefusal) and refused.code == "question_refused"
    steep = asked(site, point(), heads=4000.0 * HEADS, number=3)
    assert isinstance(steep, SiteRefusal) and steep.code == "question_refused"


def test_a_point_next_to_one_that_was_asked_is_refused(make_site: Any) -> None:
    site = make_site(policy=rules())
    assert isinstance(asked(site, point()), SiteUpdate)
    refused = asked(site, point() + 1e-13, number=2)
    assert isinstance(refused, SiteRefusal) and refused.code == "question_refused"


@pytest.mark.parametrize(
    ("heads", "points", "changes"),
    [
        (HEADS[:2], [point()], {}), (HEADS[:, 1:], [point()], {}), (HEADS, [point()[:, 1:]], {}),
        (HEADS, [np.full((1, 8), np.nan)], {}), (HEADS, [point()], {"support": "sensor_ranges", "loss": "hinge"}),
        (HEADS, [point()], {"fit_intercept": False}),
    ],
)
def test_what_does_not_fit_is_refused(make_site: Any, heads: Any, points: Any, changes: Any) -> None:
    spec = TrainingSpec.model_validate({**SPEC.model_dump(), **changes})
    refused = asked(make_site(policy=rules()), *points, heads=heads, spec=spec)
    assert isinstance(refused, SiteRefusal) and refused.code == "bad_task"


def test_two_classes_are_not_coupled(make_site: Any, tmp_path: Path, asset_type: AssetType) -> None:
    assert len(asset_type.fault_classes) == 3
    two = make_site(policy=rules(), asset_type=asset_type.model_copy(
        update={"fault_classes": asset_type.fault_classes[:2]}
    ))
    refused = asked(two, point(), heads=HEADS[:2])
    assert isinstance(refused, SiteRefusal) and refused.code == "bad_task"
