"""Unlearns again, in a store that was restored, the plants that left after the backup was made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from api.backend.actor import local_administrator, record
from api.backend.wiring import Backend
from api.models import unlearning
from api.models.schemas import Unlearning
from api.recovery.later import Departure
from api.sites import service as sites
from services.contracts.errors import BallastError, NotFoundError

REASON: Final = "it left after the backup was made that was restored"


def unlearn_again(backend: Backend, departures: Iterable[Departure]) -> tuple[list[str], list[str]]:
    """Ask for the runs that unlearn the plants: a line for each, and one for what somebody has to see to himself.

    Of several plants that left one model the last one's run is the one that trains, without all of them; the others are
    forgotten when its version is champion.
    """
    done, notes = list[str](), list[str]()
    for left in departures:
        what = f"site {left.site} was unlearned from model {left.model} on {left.at:%Y-%m-%d}"
        if left.back:
            notes.append(
                f"{what} and enrolled again since: `ballast model unlearn {left.model} --site {left.site}` forgets "
                "what the backup brought back of it"
            )
            continue
        try:
            done.append(f"{what}, and is again{_unlearn(backend, left)}")
        except BallastError as error:
            notes.append(f"{what} and is not yet again: {error}")
    return done, notes


def _unlearn(backend: Backend, left: Departure) -> str:
    """Ask for the run, or only end the enrolment of a plant that no run of the backup had; what follows, in words."""
    ended = _end_unfinished(backend, left.model)
    caught = "".join(f"; run {run_id}, caught in the middle by the backup, does not go on" for run_id in ended)
    wanted = Unlearning(site=left.site, reason=REASON, purge="now" if left.at_once else "promotion")
    try:
        unlearning.unlearn(backend, local_administrator(), left.model, wanted)
    except NotFoundError:
        enrolled = {each.site_id for each in backend.store.sites.list_sites() if each.status != "removed"}
        if left.site in enrolled:
            sites.remove(backend, local_administrator(), left.site, REASON)
        return f": no run had it{caught}"
    return f"; its run begins with `ballast up`{caught}"


def _end_unfinished(backend: Backend, model: str) -> list[str]:
    """End what the backup caught in the middle, for the plant may be in it; one that unlearns another stays due.

    Which runs these were, but for those that unlearn: they are what the restore itself asked for, or stay due.
    """
    unfinished = backend.store.runs.unfinished_runs(model)
    for run in unfinished:
        status = "cancelled" if run.leaving is None else "failed"
        with backend.store.atomic() as unit:
            unit.runs.finish_run(run.run_id, status, "a plant left after the backup was made that was restored")
            record(
                unit, local_administrator(), "run.cancel", f"run:{run.run_id}", reason=REASON,
                after={"plan": model, "status": status},
            )
    return [run.run_id for run in unfinished if run.leaving is None]
