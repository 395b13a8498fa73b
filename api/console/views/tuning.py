"""How a model's terms were chosen, for the page of a run and that of a version: as the version's report has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from models.losses.catalogue import LossName
from services.contracts.problems.tuning_curve import TuningCurve
from services.reporting import tuning_section


@dataclass(frozen=True)
class TuningPart:
    """What a page shows of a tuning: a sentence on the choice and its cost, a drawing, and a row a candidate."""

    account: str
    chart: Markup
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = tuning_section.TITLE


def tuning_part(curve: TuningCurve | None, loss: LossName) -> TuningPart | None:
    """Part of a page; None for terms that are as the plan says."""
    if curve is None:
        return None
    return TuningPart(
        account=tuning_section.tuning_account(curve),
        chart=Markup(tuning_section.tuning_chart(curve)),  # the words in it are escaped there
        caption=tuning_section.caption(loss), head=tuning_section.HEAD, rows=tuning_section.tuning_rows(curve),
    )
