"""The policy in plain words: what may leave this plant, and the limits, each with its line of ``policy.toml``."""

from __future__ import annotations

from typing import Any, get_args

from models.methods.catalogue import METHODS
from services.contracts.wire.messages import Kind, Reveal

MESSAGES: dict[Kind, str] = {
    "join": "at the start of a run: how many training rows there are, and the radius with its confidence",
    "agree": "keys for masks, signed with this plant's own key",
    "prepare": "sealed shares of the secrets behind the masks",
    "tune": "before a run: vectors of the model's size and counts on a fold, for each candidate of the plan",
    "round": "in each round: vectors of the model's size, under masks where the run is on sums",
    "unmask": "shares that take the masks off a sum, never off one plant's answer",
    "open": "once a run: two answers, sealed to an auditor that this policy lists, where the sums prove a lie",
    "evaluate": "at the end: risks, losses and counts on the held-out rows",
}
REVEALS: dict[Reveal, str] = {
    "sums": "sums over a cohort of plants, and no answer of this plant by itself",
    "each site": "this plant's own answers by themselves",
}


def leaves(policy: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Messages that the policy may list: name, whether it does, and what leaves with it."""
    return [(kind, kind in policy["messages"], MESSAGES[kind]) for kind in get_args(Kind)]


def revealed(policy: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """What a run may show the OEM's coordinator: name, whether the policy allows it, and what it is."""
    return [(mode, mode in policy["reveal"], REVEALS[mode]) for mode in get_args(Reveal)]


def methods(policy: dict[str, Any]) -> list[tuple[str, str]]:
    """Methods that are answered, and what they are; of one that this version does not know it says so."""
    return [
        (name, METHODS[name].summary if name in METHODS else "not known to this version") for name in policy["methods"]
    ]


def switches(policy: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Lines that are true or false, and what leaves where they are true."""
    words = {
        "own_scores": "this plant's own scores, by themselves, in runs on sums",
        "one_class": "answers although all training rows are of one class, which the OEM can then tell",
        "calibration_counts": "counts of held-out scores, for a target of training residuals too, at coarse thresholds",
        "tell_unchanged": "whether rows and terms are those of the run before, by a digest under an own secret",
        "tell_drift": "how far readings have moved, one number",
        "tell_exposure": "the share of rows that answers so far isolate, one number",
        "allow_unaccounted": "answers of which the plant cannot count all that they isolate",
        "audit_every_round": "all answers of a run, to an auditor, where the plan has every round opened",
    }
    return [(name, bool(policy[name]), text) for name, text in words.items()]


def limits(policy: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Limits: line, value, and what stays inside beyond it."""
    def shown(name: str) -> str:
        value = policy[name]
        return "no limit" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    words = {
        "min_samples": "training rows; with fewer nothing leaves but a refusal",
        "min_test_samples": "held-out rows; with fewer no evaluation leaves",
        "min_class_samples": "held-out rows of a class; one with fewer is left out of the counts",
        "min_new_rows": "rows of a class that come, or go, together at least; 1: each by itself",
        "min_cohort": "plants in a sum at least, this one among them",
        "max_message_bytes": "bytes of a message at most, both ways",
        "max_operations": "operations of a task; one that takes more is refused before it is computed",
        "max_rounds_per_run": "rounds of one run at most",
        "max_answers_per_run": "answers in one run at most, on the same rows",
        "max_runs_per_day": "runs in 24 hours at most",
        "exposure_limit": "share of the rows that differences of answers may isolate",
        "leverage_limit": "share of the rows that any combination of answers may isolate",
        "lift_limit": "components of different Fourier and Nystrom lifts for each training row; an eighth for splines",
        "steepness_limit": "times the risk of zero weights; a steeper question is refused",
        "nearness_limit": "share of the risks' range; a question nearer than that to an earlier one is refused",
        "noise_epsilon": "told of any row by all rounds, at noise_delta; with it only runs with noise are answered",
        "noise_delta": "the delta that goes with it",
    }
    return [(name, shown(name), text) for name, text in words.items()]
