r"""Two signed answers of one plant that no convex risk can have given, proven from an evidence file alone.

A plant's cuts are below its risk everywhere, so of its own answers

    risk(w_i) >= height_j + <slope_j, w_i - w_j> + norm_weight_j (||w_i||_* - ||w_j||_*)
                 + <swing_j, |w_i| - |w_j|>                                             for all i and j.

Where enclosed arithmetic says that one breaks this by more than ``TOLERANCE``, one of the two answers is false or the
plant's data changed between them; so too where a plant tells two risks at one point. An answer names its task by
SHA-256, so the points asked are the signed ones. The answer to the evaluation (round 0) tells a risk and no cut.

All are of one risk: some methods ask for the mean loss, or trust labels, whatever ball their tasks state, so whoever
asks an honest plant by two methods has two true answers that differ.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Exchange
from services.contracts.keys.signing import check_public_key
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import digest, unpack
from services.contracts.wire.messages import SiteUpdate, Task
from services.verification.bounds import norm_at
from services.verification.enclosures import Floats, Interval, dot, times, up
from services.verification.proof import NotProvenError

SCHEMA = "ballast.evidence/1"
OF_THE_STATED_RISK = frozenset({
    "cohort-bundle", "drfl-admm", "fdr-admm", "fdr-admm-sc", "fdr-sm", "level-bundle", "level-bundle-plain",
})
"""Methods whose rounds ask for the risk that the task states, as the evaluation does for all methods."""
TOLERANCE = 1e-6
"""Relative to the size of the terms: above what a plant's solver and float64 leave of an exact cut."""


@dataclass(frozen=True)
class Answer:
    """What was asked, ``point`` (K, D) of K heads, and said there: ``risk`` (K,), and ``slope`` .. where a cut is.

    ``when``: the round by number, or the evaluation.
    """

    when: str
    spec: TrainingSpec
    asked: Mapping[str, Floats]
    said: Mapping[str, Floats]


def write_evidence(run_id: str, site_id: str, public_key: str, exchanges: Sequence[Exchange]) -> bytes:
    """The evidence file: who is said to have signed, and the tasks and answers as they crossed the border."""
    pairs = [{"task": _text(task), "answer": _text(answer)} for task, answer in exchanges]
    found = {"schema": SCHEMA, "run_id": run_id, "site_id": site_id, "public_key": public_key, "exchanges": pairs}
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


def verify_evidence(data: bytes) -> list[str]:
    """What an evidence file proves, a line each.

    Raises
    ------
    InvalidInputError
        It is no evidence file.
    NotProvenError
        A signature does not hold, an answer is to another task, or the answers contradict one another nowhere.
    """
    run_id, site_id, key, exchanges = _read(data)
    signed = [_signed(run_id, site_id, key, *exchange) for exchange in exchanges]
    answers = [answer for _, answer in signed]
    _check_one_risk([task for task, _ in signed])
    if any(answer.spec.network is not None for answer in answers):
        raise NotProvenError("the loss of a network is not convex: true answers about it may look like contradictions")
    if found := contradiction_of(answers):
        return [
            f"proven: {site_id} contradicts itself in run {run_id}: {found}",
            f"checked: {len(answers)} answers signed by {key}, each to the task that it names by SHA-256",
            "not checked: that this key is the plant's; compare it with its enrolment",
            "either an answer is false, or the plant's data changed during the run",
        ]
    raise NotProvenError(f"the answers of {site_id} contradict one another nowhere")


def contradiction_of(
    answers: Sequence[Answer], lower: Sequence[Answer] | None = None, *, above: bool = False
) -> str:
    """What of answers of one convex risk cannot be true, in words; empty where nothing speaks against them.

    ``lower``: answers of a risk that is nowhere above, whose cuts the risks of ``answers`` are held to instead.
    ``above``: a risk may be told too high by as much as the cut beside it is too low, as on sums.
    """
    for of_risk in answers:
        for of_cut in answers if lower is None else lower:
            for head in range(min(len(of_risk.said["risk"]), len(of_cut.said["risk"]))):
                found = _unequal(of_risk, of_cut, head, above=above) if lower is None else ""
                if found := found or _broken(of_risk, of_cut, head):
                    return found
    return ""


def _read(data: bytes) -> tuple[str, str, str, list[Exchange]]:
    try:
        found = json.loads(data)
        if found["schema"] != SCHEMA:
            raise InvalidInputError(f"not an evidence file: its schema must be {SCHEMA!r}")
        exchanges = [(_bytes(pair["task"]), _bytes(pair["answer"])) for pair in found["exchanges"]]
        key = check_public_key(str(found["public_key"]))
        return str(found["run_id"]), str(found["site_id"]), key, exchanges
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
        raise InvalidInputError("not an evidence file: it must be the JSON that a run keeps of a site") from None


def _check_one_risk(tasks: Sequence[Task]) -> None:
    """Refuse answers of which two may be true though they are not of one convex risk."""
    stated = {
        (each.method, each.asset_type, each.contract, each.spec.model_dump_json(), *sorted(each.parameters.items()))
        for each in tasks
    }
    if len(stated) != 1:
        raise NotProvenError(
            "the answers are to different problems: their tasks state different balls, losses, methods or contracts"
        )
    if len({task.kind for task in tasks}) > 1 and tasks[0].method not in OF_THE_STATED_RISK:
        raise NotProvenError(
            f"the answers are of different risks: rounds of {tasks[0].method} ask for another than the evaluation"
        )


def _signed(run_id: str, site_id: str, key: str, task: bytes, answer: bytes) -> tuple[Task, Answer]:
    """Task and answer taken apart, the signature and the addresses checked."""
    parsed = unpack(answer)
    if not parsed.is_signed_by(key):
        raise NotProvenError(f"an answer is not signed by {key}")
    asked, said = unpack(task).message(), parsed.message()
    if not (isinstance(asked, Task) and isinstance(said, SiteUpdate) and asked.kind == said.kind != "join"):
        raise NotProvenError("a task of a round, or of the evaluation, and an answer to it are needed")
    if said.task_sha256 != digest(task):
        raise NotProvenError("an answer is to another task: the SHA-256 that it names is not this task's")
    if {(asked.run_id, asked.site_id), (said.run_id, said.site_id)} != {(run_id, site_id)}:
        raise NotProvenError(f"an answer is not of {site_id} in run {run_id}")
    if said.kind == "evaluate":
        return asked, _evaluated(asked, said)
    heads, point = said.arrays.get("risk", np.zeros(())).shape, asked.arrays.get("point", np.zeros(()))
    needed = {"risk", "cut_height", "slope", "norm_weight"}
    if "minorant_slope" in said.arrays:
        needed |= {"minorant_offset", "minorant_norm_weight"}
    if not needed <= set(said.arrays) or len(heads) != 1 or point.ndim != 2:
        raise NotProvenError("the answers hold no risk and cut at a point that was asked")
    p = point.shape[1] - int(asked.spec.fit_intercept)
    shapes = {"slope": point.shape[1:], "minorant_slope": point.shape[1:], "swing": (p,), "minorant_swing": (p,)}
    for name in sorted({"risk", "cut_height", "norm_weight", "minorant_offset", "minorant_norm_weight", *shapes}):
        if name not in said.arrays:
            continue
        if said.arrays[name].shape != (*heads, *shapes.get(name, ())) or not np.isfinite(said.arrays[name]).all():
            raise NotProvenError(f"the array {name} of an answer does not fit the point that was asked")
    if point.shape[0] != heads[0] or not np.isfinite(point).all():
        raise NotProvenError("the risks of an answer do not fit the points that were asked")
    return asked, Answer(f"round {said.round}", asked.spec, asked.arrays, said.arrays)


def _evaluated(asked: Task, said: SiteUpdate) -> Answer:
    """The risks (K,) told at the weights (K, P + 1) of the evaluation; the intercept as the problem has it."""
    weights, risk = asked.arrays.get("weights", np.zeros(())), said.arrays.get("risk", np.zeros(()))
    if weights.ndim != 2 or risk.shape != weights.shape[:1] or not np.isfinite([*weights.ravel(), *risk]).all():
        raise NotProvenError("the risks of the evaluation do not fit the weights that were asked")
    point = weights if asked.spec.fit_intercept else weights[:, :-1]
    return Answer("the evaluation", asked.spec, {"point": point}, {"risk": risk})


def _unequal(one: Answer, other: Answer, head: int, *, above: bool) -> str:
    """Two risks told at one point that differ, in words; empty where they do not. Others are left to their cuts."""
    if one is other or not np.array_equal(one.asked["point"][head], other.asked["point"][head]):
        return ""
    low, high = float(one.said["risk"][head]), float(other.said["risk"][head])
    least = high - _above(other, head) if above else high
    if least - low <= TOLERANCE * (1.0 + abs(low) + abs(high)):
        return ""
    beyond = f", of which its cut explains {high - least:.3g}" if least < high else ""
    return f"its risk at one point is {low:.6g} in {one.when} and {high:.6g} in {other.when}{beyond}"


def _above(answer: Answer, head: int) -> float:
    """How far a risk that is told from above may be above the plant's own, by the cut beside it."""
    if "cut_height" not in answer.said:
        return 0.0
    return max(float(answer.said["risk"][head]) - float(answer.said["cut_height"][head]), 0.0) / 2


def _broken(of_risk: Answer, of_cut: Answer, head: int) -> str:
    """The cut of one answer that lies above the risk of the other, in words; empty where none does."""
    if "slope" not in of_cut.said or of_risk.asked["point"].shape != of_cut.asked["point"].shape:
        return ""
    spec, point, own = of_risk.spec, of_risk.asked["point"][head], of_cut.asked["point"][head]
    risk, p = float(of_risk.said["risk"][head]), point.shape[0] - int(of_risk.spec.fit_intercept)
    norm = norm_at(point[:p], spec.transport_norm)
    said = {name: array[head] for name, array in of_cut.said.items() if array.ndim and array.shape[0] > head}
    swing = said.get("swing", np.zeros(p))
    at_own = _height(0.0, said["slope"], said["norm_weight"], swing, own, norm_at(own[:p], spec.transport_norm))
    from_own = Interval(said["cut_height"] - at_own.high, said["cut_height"] - at_own.low)
    cuts = [_height(0.0, said["slope"], said["norm_weight"], swing, point, norm)]
    cuts[0] = cuts[0] + Interval(np.nextafter(from_own.low, -np.inf), up(from_own.high))
    steepest = float(said["norm_weight"])
    if "minorant_slope" in said:
        offset, weight = float(said["minorant_offset"]), said["minorant_norm_weight"]
        wide = said.get("minorant_swing", np.zeros(p))
        cuts.append(_height(offset, said["minorant_slope"], weight, wide, point, norm))
        steepest = max(steepest, float(weight))
    # The risk is nowhere below its largest norm weight times the norm.
    cuts.append(times(np.array(steepest), norm))
    size = np.abs(said["slope"]) @ (np.abs(point) + np.abs(own)) + abs(float(said["cut_height"])) + abs(risk)
    size += np.abs(said.get("minorant_slope", np.zeros_like(point))) @ np.abs(point)
    size += abs(float(said.get("minorant_offset", 0.0))) + abs(steepest) * float(norm.high)
    size += (np.abs(swing) + np.abs(said.get("minorant_swing", np.zeros(p)))) @ (np.abs(point[:p]) + np.abs(own[:p]))
    highest = max(float(cut.low) for cut in cuts)
    if not highest - risk > TOLERANCE * size:  # what is no number, at weights near the largest ones, proves nothing
        return ""
    return (
        f"its risk {risk:.6g} in {of_risk.when} lies below {highest:.6g}, which its answer of {of_cut.when} proves"
    )


def _height(offset: float, slope: Floats, norm_weight: Floats, swing: Floats, at: Floats, norm: Interval) -> Interval:
    """Enclosure of ``offset + <slope, w> + norm_weight ||w||_* + <swing, |w|>``."""
    found = Interval(np.array(offset), np.array(offset)) + dot(slope, at) + times(np.asarray(norm_weight), norm)
    return found + dot(swing, np.abs(at[: swing.shape[0]]))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
