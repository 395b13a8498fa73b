"""What must hold when every run has ended: chains, ledgers, champions, reasons, and rounds computed once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flows.runner import MOST_ATTEMPTS
from services.contracts.history.run import Run
from services.registry.labels import CHAMPION
from services.site_agent.outgoing.ledger_check import read_ledger
from services.site_agent.rules.policy import REASONS
from tests.simulation.groups import untrue_groups
from tests.simulation.recount import recounted
from tests.simulation.truth import unproven_versions, untrue_bounds

if TYPE_CHECKING:
    from tests.simulation.works import Works

OWN_FAULTS = (
    "cannot be committed", "recorded already", "driven by another", "has ended already", "Traceback", "the database",
    "more than one answer",
)
"""Words of failures by which a run would fall over what the service itself had done."""
NEVER_ASKED = REASONS["question_refused"]
"""What plants say to a coordinator that is after their rows; of honest plants' answers no such question follows."""


def at_the_end(works: Works, frames: Mapping[str, tuple[bytes, list[float]]]) -> list[str]:
    """Check all, and say how each run ended."""
    world, runs = works.world, works.store.runs.list_runs()
    for run in sorted(runs, key=lambda each: each.created_at):
        if run.status in ("pending", "running"):
            world.breach(f"deadline: run {run.run_id[:8]} is {run.status} after {world.loop.time():.0f} s")
        if run.status == "failed" and any(word in run.reason for word in OWN_FAULTS):
            world.breach(f"runs: {run.run_id[:8]} failed over the service itself: {run.reason}")
        if run.reason.startswith("its process ended") and _falls(works) < MOST_ATTEMPTS:
            world.breach(f"runs: {run.run_id[:8]} failed, and nothing had befallen its processes: {run.reason}")
        if run.status == "failed" and _asks_truly(works) and NEVER_ASKED in run.reason:
            world.breach(f"questions: run {run.run_id[:8]} failed over what plants are never asked: {run.reason}")
        if run.cancel_requested and run.status == "completed" and _was_early(works, run):
            world.breach(f"cancel: run {run.run_id[:8]} was cancelled and completed")
        if run.plan.reveal == "each site":
            for each in run.excluded:
                if each.site_id != works.scenario.liar:
                    world.breach(f"liars: {each.site_id} was honest, run {run.run_id[:8]} left it out: {each.reason}")
            _check_again(works, run, frames)
        for problem in untrue_bounds(works, run):
            world.breach(f"bounds: {problem}")
        world.note(f"run {run.run_id} {run.status} {run.rounds} {run.upper} {run.lower}")
    for problem in (*(f"groups: {each}" for each in untrue_groups(works, runs)), *unproven_versions(works)):
        world.breach(problem)
    report = works.store.audit.verify_chain()
    if not report.ok:
        world.breach(f"audit: {report.problem}")
    _check_versions(works, runs)
    for site, plant in works.plants.items():
        for problem in read_ledger(plant.ledger).problems:
            world.breach(f"ledger: {site}: {problem}")
        world.note(f"ledger of {site}", plant.ledger.read_bytes())
    return [f"{run.status}: {run.reason}" for run in runs]


def _asks_truly(works: Works) -> bool:
    """Whether plants heard what was asked, and said what they found: a changed question is near the true one.

    Agents of before do not look at a task's signature: what was changed on its way they take for what was asked.
    """
    believing = any(plant.of_before for plant in works.plants.values())
    return not works.scenario.liar and not (believing and works.world.faults["message corrupted"])


def _falls(works: Works) -> int:
    """How often something befell the processes of the OEM's side."""
    kinds = (
        "crash", "hold", "clock jump", "partition", "store locked", "store full", "store crash before",
        "store crash after",
    )
    return sum(works.world.faults[kind] for kind in kinds)


def _was_early(works: Works, run: Run) -> bool:
    """Whether the order to cancel stood before the last two rounds were committed."""
    at = works.invariants._cancelled.get(run.run_id)
    return at is not None and at + 1 < run.rounds


def _check_versions(works: Works, runs: list[Run]) -> None:
    """One champion, the one that the store says, with its event; one version for each completed training."""
    world, name = works.world, works.scenario.plan.name
    recorded, pointed = works.store.model_versions.alias(name, CHAMPION), works.registry.aliases(name).get(CHAMPION)
    expected = None if recorded is None else recorded.version
    if expected != pointed:
        world.breach(f"champion: the store says version {expected}, the registry {pointed}")
    versions = works.store.model_versions.list_versions(name, limit=100)
    ends = {run.run_id: run for run in runs}
    for record in versions:
        run = ends[record.run_id]
        if run.status != "completed" and not run.reason.startswith(("its process ended", "the registry")):
            world.breach(f"versions: version {record.version} is of a run that {run.status}: {run.reason}")
    for run in runs:
        count = sum(record.run_id == run.run_id for record in versions)
        if run.status == "completed" and count != (0 if run.plan.tunes_only else 1):
            world.breach(f"versions: completed run {run.run_id[:8]} has {count} versions")
        if run.plan.tunes_only and (run.rounds or run.status == "completed" and run.plan.tuned is None):
            world.breach(f"tuning: run {run.run_id[:8]} tunes alone, is {run.status} after {run.rounds} rounds")
    with works.engine.connect() as connection:
        changes = connection.exec_driver_sql("SELECT count(*) FROM alias_changes WHERE alias = 'champion'").scalar_one()
        events = connection.exec_driver_sql(
            "SELECT count(*) FROM audit_events WHERE action = 'model.promote'"
        ).scalar_one()
        ordered = connection.exec_driver_sql(
            "SELECT count(*) FROM audit_events WHERE action IN ('plan.trigger', 'plan.tune')"
        ).scalar_one()
    if changes != events:
        world.breach(f"audit: {changes} promotions are recorded, {events} stand in the trail")
    if ordered != len(runs):
        world.breach(f"audit: {len(runs)} runs were ordered, {ordered} orders stand in the trail")


def _check_again(works: Works, run: Run, frames: Mapping[str, tuple[bytes, list[float]]]) -> None:
    """Every committed round follows from the answers that it names and the rounds before it, each counted once."""
    if not run.sites:
        return
    answers = {sha256: frame for sha256, (frame, _) in frames.items()}
    records = works.store.runs.get_rounds(run.run_id)
    counted, problem = recounted(run, records, answers, works.asset_type, works.invariants.steps)
    if not problem and counted < len(records):
        problem = f"run {run.run_id[:8]} counts answers of round {counted + 1} that nobody heard"
    if problem:
        works.world.breach(f"rounds: {problem}")
