"""Evidence files made by hand: what a signed answer must hold to prove anything, and what is said where it does not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Exchange
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import digest, encode
from services.contracts.wire.messages import SiteUpdate, Task
from services.verification.contradiction import verify_evidence, write_evidence
from services.verification.proof import NotProvenError

RUN, SITE = "a" * 32, "plant-1"
POINT = np.array([[1.0, -2.0, 0.5]])
FLAT = {
    "risk": np.array([0.5]), "cut_height": np.array([0.4]), "slope": np.zeros((1, 3)), "norm_weight": np.zeros(1),
    "minorant_offset": np.zeros(1), "minorant_slope": np.zeros((1, 3)), "minorant_norm_weight": np.zeros(1),
}


class Plant:
    """A plant whose key signs what it is told to say."""

    def __init__(self, folder: Path) -> None:
        self.key = new_seed_file(folder / "plant.nk")
        self._sign = signer(folder / "plant.nk")

    def exchange(self, number: int, said: dict[str, Any], *, fit_intercept: bool = True) -> Exchange:
        """A task of a round at :data:`POINT`, and the plant's answer."""
        task = encode(Task(
            kind="round", site_id=SITE, run_id=RUN, round=number, method="level-bundle", asset_type="rig",
            contract="0" * 64, spec=TrainingSpec(fit_intercept=fit_intercept), arrays={"point": POINT},
        ))
        return task, encode(SiteUpdate(
            kind="round", site_id=SITE, run_id=RUN, round=number, task_sha256=digest(task), arrays=said
        ), self._sign)

    def evaluation(self, risk: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Exchange:
        """A task of the evaluation at :data:`POINT`, without an intercept, and the plant's answer."""
        task = encode(Task(
            kind="evaluate", site_id=SITE, run_id=RUN, round=0, method="level-bundle", asset_type="rig",
            contract="0" * 64, spec=TrainingSpec(fit_intercept=False), arrays={"weights": np.c_[POINT, 0.0]},
        ))
        return task, encode(SiteUpdate(
            kind="evaluate", site_id=SITE, run_id=RUN, round=0, task_sha256=digest(task), arrays={"risk": risk}
        ), self._sign)

    def evidence(self, *said: dict[str, Any]) -> bytes:
        """The file on these answers, of one round each."""
        return write_evidence(RUN, SITE, self.key, [self.exchange(1 + k, each) for k, each in enumerate(said)])


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    return Plant(tmp_path)


def test_two_risks_at_one_point_are_proven_from_the_file_alone(plant: Plant) -> None:
    lines = verify_evidence(plant.evidence(FLAT, FLAT | {"risk": np.array([0.6])}))
    assert "proven: plant-1 contradicts itself" in lines[0] and "0.5 in round 1 and 0.6 in round 2" in lines[0]
    with pytest.raises(NotProvenError, match="contradict one another nowhere"):
        verify_evidence(plant.evidence(FLAT, FLAT))


@pytest.mark.parametrize("name", sorted(FLAT.keys() - {"minorant_slope"}))
def test_an_answer_that_lacks_a_part_of_its_cuts_proves_nothing(plant: Plant, name: str) -> None:
    """A cut without its height or its norm weight is none; a file with such an answer is refused in one line."""
    fewer = {other: array for other, array in FLAT.items() if other != name}
    with pytest.raises(NotProvenError, match="the answers hold no risk and cut at a point that was asked"):
        verify_evidence(plant.evidence(FLAT, fewer))


@pytest.mark.parametrize("name", sorted(FLAT))
def test_an_array_of_another_shape_proves_nothing(plant: Plant, name: str) -> None:
    wide = FLAT | {name: np.zeros((2, *FLAT[name].shape[1:]))}
    with pytest.raises(NotProvenError, match="does not fit|do not fit"):
        verify_evidence(plant.evidence(FLAT, wide))


@pytest.mark.parametrize("key", ["schema", "run_id", "site_id", "public_key", "exchanges"])
def test_a_file_without_a_field_of_evidence_is_none(plant: Plant, key: str) -> None:
    document = json.loads(plant.evidence(FLAT, FLAT | {"risk": np.array([0.6])}))
    with pytest.raises(InvalidInputError, match="not an evidence file"):
        verify_evidence(json.dumps({name: each for name, each in document.items() if name != key}).encode())


def test_a_frame_that_is_none_is_told_in_one_line(plant: Plant) -> None:
    document = json.loads(plant.evidence(FLAT, FLAT))
    for text in ("", base64.b64encode(b"BLS1").decode(), "!"):
        document["exchanges"][0]["answer"] = text
        with pytest.raises(InvalidInputError):
            verify_evidence(json.dumps(document).encode())


def test_an_answer_that_another_signed_proves_nothing(plant: Plant, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Plant(tmp_path / "other")
    exchanges = [plant.exchange(1, FLAT), other.exchange(2, FLAT | {"risk": np.array([0.6])})]
    with pytest.raises(NotProvenError, match=f"not signed by {plant.key}"):
        verify_evidence(write_evidence(RUN, SITE, plant.key, exchanges))


def test_without_an_intercept_the_evaluation_is_of_the_weights_that_the_rounds_ask_for(plant: Plant) -> None:
    """The evaluation's last weight is 0 there, and no part of the point."""
    found = plant.exchange(1, FLAT, fit_intercept=False), plant.evaluation(np.array([0.6]))
    assert "0.5 in round 1 and 0.6 in the evaluation" in verify_evidence(
        write_evidence(RUN, SITE, plant.key, found)
    )[0]
