"""What goes wrong while an answer is made leaves as a code and its fixed sentence, never with what was found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from models.basics import ProblemError
from services.contracts.problems.lift import LiftMismatchError
from services.site_agent.door.refusals import as_refusals
from services.site_agent.rules.policy import REASONS, Refusal
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.records.exposure_record import ExposureRecordError

PRIVATE = "row 17 reads 41.5 L/min"
TASK: Any = SimpleNamespace(kind="round", run_id="a" * 32)


@pytest.mark.parametrize(("error", "code"), [
    (LiftMismatchError(PRIVATE), "contract_mismatch"), (ProblemError(PRIVATE), "bad_task"),
    (ExposureRecordError(PRIVATE), "internal_error"), (ValueError(PRIVATE), "internal_error"),
    (ZeroDivisionError(PRIVATE), "internal_error"), (KeyError(PRIVATE), "internal_error"),
    (TypeError(PRIVATE), "internal_error"), (RuntimeError(PRIVATE), "internal_error"),
    (MemoryError(PRIVATE), "internal_error"),
], ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value)
def test_an_error_leaves_as_its_code_and_a_sentence_that_says_nothing_of_the_rows(error: Exception, code: str) -> None:
    with pytest.raises(Refusal) as refused, as_refusals(TASK):
        raise error
    assert (refused.value.refusal_code, refused.value.reason) == (code, REASONS[refused.value.refusal_code])
    assert PRIVATE in str(refused.value) and PRIVATE not in refused.value.reason, "the site's own log has it"
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


def test_an_error_of_the_vault_has_the_code_that_it_brings() -> None:
    error = VaultError(PRIVATE, "contract_mismatch")
    with pytest.raises(Refusal) as refused, as_refusals(TASK):
        raise error
    assert refused.value.refusal_code == "contract_mismatch" and PRIVATE not in refused.value.reason


def test_a_refusal_and_what_ends_the_agent_pass_as_they_are() -> None:
    for error in (Refusal("bad_task", isolating=True), KeyboardInterrupt()):
        with pytest.raises(type(error)) as passed, as_refusals(TASK):
            raise error
        assert passed.value is error
