"""All classes as one problem (Crammer-Singer): its training, planes and risks, as the classifiers keep them.

The weights of such a run are those of all planes, slopes row by row and then the intercepts, ``(C (P + 1),)``; without
intercepts ``(C P,)`` (``models.worst_case.joint_risk``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError
from models.estimators.solving import Statement
from models.estimators.table import Table
from models.estimators.values import check_word
from models.simulation.crammer_singer import train_crammer_singer
from models.simulation.federation import Training
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.crammer_singer import crammer_singer_cut
from models.worst_case.joint_risk import class_planes

CRAMMER_SINGER: Final = "crammer_singer"
MULTI_CLASS: Final = ("one_vs_rest", CRAMMER_SINGER)
"""How more than two classes are trained: a plane a class against the rest, or all of them as one problem."""


def is_joint(multi_class: str, *, plain: bool) -> bool:
    """Whether a classifier asks for it; ``plain``: with the hinge loss, no support and terms as they are stated.

    ``ProblemError`` for another word, or where it is not plain.
    """
    check_word("multi_class", multi_class, MULTI_CLASS)
    if multi_class == CRAMMER_SINGER and not plain:
        raise ProblemError(
            "crammer_singer is for the hinge loss, features without bounds, method 'auto' and terms as stated: "
            "leave out support, method and tuning, or set multi_class to one_vs_rest"
        )
    return multi_class == CRAMMER_SINGER


def joint_training(
    table: Table, stated: Statement, n_classes: int, mixture: MixtureBall, *, gap: float, absolute_gap: float | None,
    max_rounds: int, fit_intercept: bool,
) -> Training:
    """Training of all classes of a table over its sites, to a relative or an absolute gap."""
    problems = {str(g): table.problem(g, table.outcomes, spec) for g, spec in enumerate(stated.specs)}
    found = train_crammer_singer(
        problems, n_classes, weights=dict(zip(problems, stated.weights.tolist(), strict=True)), mixture=mixture,
        gap=gap, absolute_gap=absolute_gap, max_rounds=max_rounds,
    )
    ends = [found.planes[:, -1]] if fit_intercept else []
    flat = np.concatenate([found.planes[:, :-1].ravel(), *ends])
    return Training(flat, found.certificate, found.status, found.site_risks, found.mixture_weights, found.history, flat)


def joint_planes(weights: FloatArray, n_classes: int, *, fit_intercept: bool) -> FloatArray:
    """Planes (C, P + 1) of the weights of all, or (C, P) without intercepts."""
    n_features = weights.shape[0] // n_classes - int(fit_intercept)
    planes = class_planes(weights, n_classes, n_features, fit_intercept)
    return planes if fit_intercept else planes[:, :-1]


def joint_risks(weights: FloatArray, table: Table, stated: Statement, n_classes: int) -> FloatArray:
    """Worst-case risk of all classes at each site, (1, G)."""
    cuts = [
        crammer_singer_cut(weights, table.problem(g, table.outcomes, spec), n_classes)
        for g, spec in enumerate(stated.specs)
    ]
    return np.array([[cut.risk for cut in cuts]])
