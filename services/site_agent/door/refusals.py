"""What goes wrong while an answer is made, as the refusal that leaves instead of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from models.basics import ProblemError
from services.contracts.problems.lift import LiftMismatchError
from services.contracts.wire.messages import Task
from services.site_agent.logs import PRIVATE
from services.site_agent.rules.policy import Refusal
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.records.exposure_record import ExposureRecordError


@contextmanager
def as_refusals(task: Task) -> Iterator[None]:
    """Every error of the vault and of the models becomes a :class:`Refusal`; details stay in the site's own log."""
    try:
        yield
    except VaultError as error:
        raise Refusal(error.refusal_code, str(error)) from None
    except LiftMismatchError as error:
        raise Refusal("contract_mismatch", str(error)) from None
    except ProblemError as error:
        raise Refusal("bad_task", str(error)) from None
    except ExposureRecordError as error:
        raise Refusal("internal_error", str(error)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        PRIVATE.exception("task %s of run %s failed", task.kind, task.run_id)
        raise Refusal("internal_error", f"{type(error).__name__}: {error}") from None
