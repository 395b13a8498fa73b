"""The calibration of a version from what plants, or cohorts of them, counted of their held-out rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.conformal.coverage import Counted, held_by_all, held_by_mixtures
from models.conformal.grid import counts_within, score_grid
from models.conformal.spread import Shape, shape_of
from models.conformal.temperature import matched_scale
from models.losses.regression import Pinball
from services.contracts.evaluation.calibration import COVERAGE, ROWS, Calibration, CountedRows, Kind
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.terms import mixture_of

NO_COUNTS = "no plant counted its held-out rows: the policies do not allow it, or the agents are of before"


def kind_of(plan: Plan) -> Kind:
    """What is asked for: sets, or intervals. Those of a quantile other than the median promise each tail by itself.

    With noise on the sums, intervals of one width: counts of training rows would leave without noise.
    """
    if plan.spec.loss.task == "classification":
        return "sets"
    loss = plan.spec.loss.loss
    if isinstance(loss, Pinball) and loss.quantile != 0.5:
        return "tails"
    return "absolute" if plan.noise is not None else "spread"


def calibration(run: Run, said: Mapping[str, Arrays], groups: Mapping[str, tuple[str, ...]]) -> Calibration:
    """Calibration from the answers of groups, by name; ``groups`` are the plants of all of them, by the same names.

    A group of one plant tells its own counts, one of more its sum. Where a spread was asked for and somebody's counts
    are not by the estimate, the intervals have one width.
    """
    plan, kind = run.plan, kind_of(run.plan)
    if kind == "spread" and any("by_estimate" not in each for each in said.values()):
        kind = "absolute"
    base = Calibration(
        kind=kind, coverage=plan.coverage or COVERAGE, asked=plan.coverage is not None,
        shift=plan.coverage_shift, over=plan.coverage_over,
        missing=sum(len(members) for name, members in groups.items() if name not in said), note=NO_COUNTS,
    )
    found = {name: each for name, each in said.items() if float(each["n_test"]) > 0}
    if not found:
        return base
    shape = shape_of(np.sum([each["training"] for each in found.values()], axis=0)) if kind == "spread" else None
    try:
        held = _held(run, found, groups, kind, shape)
    except ProblemError as error:
        return base.model_copy(update={"note": f"the counts cannot be: {error}"})
    rows = [CountedRows(n_test=int(each["n_test"]), plants=len(groups[name])) for name, each in found.items()]
    return Calibration.model_validate({
        **base.model_dump(), "note": "", "groups": rows, "grid": tuple(score_grid().tolist()),
        "held": {name: tuple(shares.tolist()) for name, shares in held.items()}, "scale": _scale(found),
        "spread": None if shape is None else {"below": shape.below.tolist(), "above": shape.above.tolist()},
    })


def _held(
    run: Run, found: Mapping[str, Arrays], groups: Mapping[str, tuple[str, ...]], kind: Kind, shape: Shape | None
) -> dict[str, FloatArray]:
    """Held shares by name, as :class:`Calibration` keeps them."""
    counted = {
        row: [
            Counted(each["counts"][place], int(each["n_test"]), len(groups[name])) for name, each in found.items()
        ]
        for place, row in enumerate(ROWS)
    }
    shares = {site.site_id: site.weight for site in run.members}
    centre = np.array([sum(shares.get(site, 0.0) for site in groups[name]) for name in found])
    every = run.plan.coverage_over == "every group" or centre.sum() <= 0

    def over(parts: list[FloatArray]) -> FloatArray:
        stacked = np.stack(parts)
        return held_by_all(stacked) if every else held_by_mixtures(
            stacked, centre / centre.sum(), mixture_of(run.plan).ball
        )

    errors = counted["error"]
    if shape is not None:
        held = {"spread": over([
            Counted(shape.held(said["by_estimate"]), each.n, each.plants).held
            for said, each in zip(found.values(), errors, strict=True)
        ])}
    elif kind == "sets":
        held = {"error": over([each.held for each in errors])}
    elif kind == "absolute":
        held = {"absolute": over([Counted(counts_within(each.counts), each.n, each.plants).held for each in errors])}
    else:
        held = {"below": over([each.held for each in errors]), "above": over([each.beyond for each in errors])}
    # Whether a row is unlike the others is asked of all rows together: by itself a plant has too few of them.
    for row in ("size", "reach"):
        every_row = counted[row]
        total = Counted(
            np.sum([each.counts for each in every_row], axis=0), sum(each.n for each in every_row),
            sum(each.plants for each in every_row),
        )
        held[row] = total.held
    return held


def _scale(found: Mapping[str, Arrays]) -> float | None:
    if any("confidences" not in each for each in found.values()):
        return None
    sums = np.sum([each["confidences"] for each in found.values()], axis=0)
    right, n = (float(sum(float(each[name]) for each in found.values())) for name in ("right", "n_test"))
    return matched_scale(sums, right, n)
