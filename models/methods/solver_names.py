"""What solves a site's part of a problem, by its loss and its support: names for the version and the report."""

from __future__ import annotations

from typing import Final, Literal

from models.losses.base import Loss

SupportKind = Literal["unbounded", "box", "polytope"]

LOCAL_BUNDLE: Final = "local bundle of exact cuts"


def risk_solver(loss: Loss, support: SupportKind) -> str:
    """What finds the worst-case risk at a point (``models.worst_case``)."""
    if support == "polytope":
        return "worst case on a polytope by CVXPY with Clarabel"
    if support == "box":
        return "exact worst case by price search"
    return "exact worst case by selection" if loss.task == "classification" else "exact worst case in closed form"


def prox_solver(loss: Loss, support: SupportKind) -> str:
    """What takes a proximal step (``models.methods.local_bundle``)."""
    if loss.name == "hinge" and support == "unbounded":
        return "active sets on a working set with an interior point behind them"
    return LOCAL_BUNDLE
