"""One plant that spoils its half of the masks, in a whole run: it costs no other its place, and is named itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.contracts.history.run import ExcludedSite
from services.contracts.keys.signing import signer
from services.contracts.wire.masking import MaskKey, Preparation, Unmasked, Unmasking
from services.contracts.wire.messages import Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.round_loop import summed_rounds
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.training_state import TrainedModel
from services.masking.keys import _statement
from services.site_agent.rules.policy import Refusal
from tests.services.coordinator.fake_ports import FakePlant, FakeWorks

LIAR = "plant-4"


@pytest.fixture
def works(works: FakeWorks, monkeypatch: pytest.MonkeyPatch) -> FakeWorks:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)
    return works


def on_sums(works: FakeWorks, **changes: Any) -> Any:
    plan = {"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}, "min_sites": 3}
    return works.run(**plan | {"absence_patience_seconds": 5.0} | changes)


def masks(plant: FakePlant, change: Callable[[Any], Any]) -> None:
    """The plant says what ``change`` makes of its half of the masks."""
    honest = plant.masked
    plant.masked = lambda task: change(honest(task))  # type: ignore[method-assign]


def sealed_for(*peers: str) -> Callable[[Any], Any]:
    """Boxes for these peers hold nothing."""
    def spoilt(preparation: Preparation) -> Preparation:
        return preparation.model_copy(update={"sealed": preparation.sealed | dict.fromkeys(peers, bytes(108))})

    def falsely(said: Any) -> Any:
        if isinstance(said, Unmasked) and said.preparation is not None:
            return said.model_copy(update={"preparation": spoilt(said.preparation)})
        return spoilt(said) if isinstance(said, Preparation) else said

    return falsely


def denied(*peers: str) -> Callable[[Any], Any]:
    """It says that the boxes of these peers did not open."""
    def falsely(said: Any) -> Any:
        if not isinstance(said, Unmasked):
            return said
        kept = {site: share for site, share in said.revealed.self_shares.items() if site not in peers}
        return said.model_copy(update={"revealed": said.revealed.model_copy(update={"self_shares": kept})})

    return falsely


def trained_without_the_liar(works: FakeWorks, **changes: Any) -> tuple[ExcludedSite, TrainedModel]:
    """A run to its gap that leaves the liar out, and nobody else: how it stands in the run, and the model."""
    run = on_sums(works, **changes)
    trained = works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert left_out.site_id == LIAR and trained.certificate.gap <= 1e-3
    return left_out, trained


@pytest.mark.parametrize(("how", "words"), [
    (sealed_for("plant-1"), f"plant-1 says that what {LIAR} sealed for it"),
    (denied("plant-1", "plant-2", "plant-3"), f"{LIAR} says that what plant-1 sealed for it"),
])
def test_a_box_that_one_plant_cannot_open_costs_nobody_its_place(
    works: FakeWorks, how: Callable[[Any], Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    masks(works.plants[LIAR], how)
    run = on_sums(works)
    trained = works.train(run)
    assert trained.certificate.gap <= 1e-3 and works.store.get_run(run.run_id).excluded == ()
    said = [line for line in caplog.messages if "does not open; one of the two lies" in line]
    assert said and all(LIAR in line and "plant-1" in line for line in said if "plant-1" in line)
    assert all(line.startswith(words) for line in said if "plant-1" in line), "who says it, and of whom"


def test_who_seals_for_none_is_left_out_and_the_run_goes_on(works: FakeWorks) -> None:
    masks(works.plants[LIAR], sealed_for("plant-1", "plant-2", "plant-3"))
    left_out, trained = trained_without_the_liar(works)
    assert (left_out.code, left_out.round) == ("false_shares", 1)
    assert set(trained.worst_weights) == {"plant-1", "plant-2", "plant-3"}


def test_of_three_plants_who_seals_for_none_is_the_one_that_is_named(works: FakeWorks) -> None:
    del works.plants["plant-3"]
    masks(works.plants[LIAR], sealed_for("plant-1", "plant-2"))
    with pytest.raises(TooFewSitesError, match=f"2 of the 3 sites .* are left: .*{LIAR}"):
        works.train(on_sums(works))


@pytest.mark.parametrize("how", [sealed_for("plant-1"), denied("plant-1")])
def test_of_three_plants_one_word_against_one_names_both(works: FakeWorks, how: Callable[[Any], Any]) -> None:
    del works.plants["plant-3"]
    masks(works.plants[LIAR], how)
    with pytest.raises(TooFewSitesError, match="cannot tell which of the two lies") as found:
        works.train(on_sums(works, absence_patience_seconds=0.0))
    assert LIAR in str(found.value) and "plant-1" in str(found.value) and "plant-2" not in str(found.value)


def test_who_answers_and_never_unmasks_where_all_are_needed_is_left_out(works: FakeWorks) -> None:
    plant = works.plants[LIAR]

    def behave(task: Task) -> RawAnswer | None:
        return RawAnswer(LIAR, None, "late", 0.1) if isinstance(task.masking, Unmasking) else None

    plant.behave = behave
    left_out, _ = trained_without_the_liar(works, sum_threshold=1.0)
    assert "made masks for 5 rounds" in left_out.reason


def test_a_mask_key_that_nobody_can_use_is_left_out_alone(works: FakeWorks) -> None:
    plant = works.plants[LIAR]

    def low(said: Any) -> Any:
        if not isinstance(said, MaskKey):
            return said
        signature = signer(plant.seed_file)(_statement(said.cohort, LIAR, bytes(32)))
        return said.model_copy(update={"public_key": bytes(32), "signature": signature})

    masks(plant, low)
    left_out, _ = trained_without_the_liar(works, absence_patience_seconds=0.5)
    assert "no point that a secret can be agreed on with" in left_out.reason


def test_a_plant_that_refuses_all_boxes_as_agents_of_before_did_is_left_out_by_name(works: FakeWorks) -> None:
    """It cannot be told from one that never answers."""
    plant, honest = works.plants["plant-1"], works.plants["plant-1"].masked

    def refusing(task: Task) -> Any:
        if task.kind == "round":
            raise Refusal("masks_refused")
        return honest(task)

    plant.masked = refusing  # type: ignore[method-assign]
    run = on_sums(works)
    works.train(run)
    assert [each.site_id for each in works.store.get_run(run.run_id).excluded] == ["plant-1"]
