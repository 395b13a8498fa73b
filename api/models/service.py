"""Promotion and rollback of model versions."""

from __future__ import annotations

from functools import partial

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from api.models.schemas import ChampionChange
from services.auditing.standing import audit_gate
from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.run import Run
from services.coordinator.run_state.terms import cohorts_of
from services.registry.labels import CHAMPION, PREVIOUS
from services.round_store.store import Repositories


def promote(
    backend: Backend, actor: Actor, name: str, version: str, reason: str, *, ignore_gates: bool = False
) -> ChampionChange:
    """Make a version champion; ``version`` is a number or an alias.

    ``NotFoundError`` when there is no such version; ``ConflictError`` when it is champion already, or a gate of its
    plan does not hold, its audit among them, and ``ignore_gates`` is not set.
    """
    number = backend.registry.resolve(name, version)
    _champion_before(backend, name, number)
    gates = None
    if not ignore_gates:
        run = _run(backend, name, number)
        kept = backend.store.runs.get_cases(run.run_id)
        gates, audited = run.plan.gates, audit_gate(run.plan, partial(cohorts_of, run), kept)
        if audited is not None and not audited.holds:
            raise ConflictError(f"version {number} of model {name} is not promoted: audit: {audited.reason}")
    with backend.store.atomic() as store:
        store.audit.take_turn()
        before = _champion_before(backend, name, number)
        change = ChampionChange(model=name, version=number, previous_version=before, actor=actor.name, reason=reason)
        _note(store, actor, "model.promote", change, ignore_gates=ignore_gates)
        gone = store.model_versions.forgotten_numbers(name)
        # Last, inside the transaction: when the registry says no, nothing was noted.
        backend.registry.promote(name, number, gates=gates, actor=actor.name, reason=reason, without=gone)
        _follow(backend, store, change)
    return change


def rollback(backend: Backend, actor: Actor, name: str, reason: str) -> ChampionChange:
    """Make the champion before this one champion again; ``ConflictError`` when there is none."""
    with backend.store.atomic() as store:
        store.audit.take_turn()
        before = champion_of(backend, name)
        gone = store.model_versions.forgotten_numbers(name)
        restored = backend.registry.rollback(name, actor=actor.name, reason=reason, without=gone)
        change = ChampionChange(
            model=name, version=restored.version, previous_version=before, actor=actor.name, reason=reason
        )
        _note(store, actor, "model.rollback", change)
        _follow(backend, store, change)
    return change


def champion_of(backend: Backend, name: str) -> str | None:
    """Version number of a model's champion; None when it has none."""
    try:
        return backend.registry.resolve(name, CHAMPION)
    except NotFoundError:
        return None


def _champion_before(backend: Backend, name: str, number: str) -> str | None:
    """Champion before a promotion; ``ConflictError`` where it is the version to be promoted."""
    before = champion_of(backend, name)
    if before == number:
        raise ConflictError(f"version {number} of model {name} is champion already")
    return before


def _run(backend: Backend, name: str, number: str) -> Run:
    run_id = backend.checked.get(name, number).run_id
    try:
        return backend.store.runs.get_run(run_id)
    except NotFoundError:
        raise ConflictError(
            f"the run of version {number} is not in the store, so its gates cannot be judged; "
            "set ignore_gates to promote it all the same"
        ) from None


def _follow(backend: Backend, store: Repositories, change: ChampionChange) -> None:
    """Record where the other alias that the registry moved with it points now."""
    before = backend.registry.aliases(change.model).get(PREVIOUS)
    store.model_versions.follow_alias(change.model, PREVIOUS, before, change.actor, change.reason)


def _note(store: Repositories, actor: Actor, action: str, change: ChampionChange, **more: bool) -> None:
    """Put the change into the audit trail and, where the store knows the version, into the history of its alias."""
    after = {"champion": change.version} | more
    record(
        store, actor, action, f"model:{change.model}",
        before={"champion": change.previous_version}, after=after, reason=change.reason,
    )
    history = store.model_versions
    try:
        history.record_alias(change.model, CHAMPION, change.version, actor.name, change.reason)
    except NotFoundError:
        if history.alias(change.model, CHAMPION) is not None:  # else the champion before would be put back
            history.record_alias(change.model, CHAMPION, None, actor.name, change.reason)
