"""A task's bytes taken apart: whether they are a task that may be answered, and what an answer to them refers to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from models.basics import ProblemError
from models.cohorts.sums import check_on_sums
from models.methods.catalogue import METHODS
from services.contracts.machines.asset_type import AssetType
from services.contracts.wire.codec import Frame, FrameError, digest, unpack
from services.contracts.wire.messages import SiteRefusal, Task
from services.site_agent.rules.policy import Refusal, SitePolicy

NO_RUN = "0" * 32
"""Run id in the refusal of a task that names none."""


def read_task(
    frame: Frame | FrameError, size: int, site_id: str, asset_type: AssetType, policy: SitePolicy,
    rounds_answered: Callable[[str], int],
) -> Task:
    """Task of a frame of ``size`` bytes, if it is one, is for this site, and the policy and the contract allow it.

    ``rounds_answered`` says of a run how many rounds of it were answered; :class:`Refusal` where something is not so.
    """
    if size > policy.max_message_bytes:
        raise Refusal("message_too_large", f"{size} bytes, the policy allows {policy.max_message_bytes}")
    if isinstance(frame, FrameError):
        raise Refusal("bad_task", str(frame))
    try:
        task = frame.message()
    except FrameError as error:
        raise Refusal("bad_task", str(error)) from None
    if not isinstance(task, Task):
        raise Refusal("bad_task", f"a task was due, got a {task.type}")
    if task.site_id != site_id:
        raise Refusal("wrong_site", f"the task is for site {task.site_id}")
    policy.check_task(task, rounds_answered(task.run_id))
    if task.reveal == "sums" and task.method in METHODS:
        try:
            check_on_sums(METHODS[task.method])
        except ProblemError as error:
            raise Refusal("mode_not_allowed", str(error)) from None
    if task.asset_type != asset_type.name:
        raise Refusal("asset_type_not_allowed", f"this site holds {asset_type.name}, not {task.asset_type}")
    if task.contract != asset_type.fingerprint:
        raise Refusal("contract_mismatch", "the OEM's asset type file differs from the one here")
    missing = asset_type.missing_for_task(task.spec.loss.task)
    if missing:
        raise Refusal("no_labels", missing)
    return task


def salvage(data: bytes, site_id: str) -> tuple[dict[str, Any], Frame | FrameError]:
    """What an answer refers to, and the frame taken apart, or why it is none.

    Kind, run and round as the task names them, or a placeholder where it does not.
    """
    reply_to = {"kind": "join", "site_id": site_id, "run_id": NO_RUN, "round": 0, "task_sha256": digest(data)}
    try:
        frame = unpack(data)
    except FrameError as error:
        return reply_to, error
    named = reply_to | {key: frame.header.get(key) for key in ("kind", "run_id", "round")}
    try:
        SiteRefusal(**named, code="bad_task", reason="")
    except ValidationError:
        return reply_to, frame
    return named, frame
