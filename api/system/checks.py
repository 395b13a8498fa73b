"""What ``ballast doctor`` judges of the service: checks take facts and say whether they are well, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from api.backend.flows_process import HANGS
from api.system.finding import Finding, span
from api.system.host_checks import SKEW_WARN
from services.contracts.history.events import Webhook
from services.contracts.history.run import Run
from services.contracts.history.site import Site

BACKUP_AGE: Final = timedelta(days=7)
STUCK: Final = timedelta(minutes=10)
STORE_TODO: Final = {
    "database_no_table": "`ballast migrate`; where there were rows, it is another file or database than before",
    "database_no_file": "where rows were stored, `ballast restore` the last backup elsewhere; else `ballast migrate`",
    "database_shut": "let the service's account read and write the file, and write into its folder",
    "database_too_old": "`ballast migrate`",
    "database_too_new": "install the newer version of Ballast",
    "database_full": "make room on that disk; nothing is damaged",
    "database_disk": "look at the disk (`dmesg`), and keep a copy of the file before anything else",
    "database_read_only": "give the service's account the right to write there",
    "database_busy": "find who holds it for so long, such as a copy being made, and try again",
    "database_broken": "stop the service, keep the file, and `ballast restore` the last backup into another folder",
}
"""What to do where the store cannot be used, by the failure's code."""


def audit(ok: bool, events: int, problem: str) -> Finding:
    """The chain of the audit trail."""
    if ok:
        return Finding(check="audit trail", state="ok", said=f"{events} entries, none changed, missing or reordered")
    return Finding(
        check="audit trail", state="fail", said=problem,
        todo="somebody wrote to the database past the service: keep it as it is, and compare it with a backup",
    )


def registry(
    model: str, moved: Iterable[object], missing: Iterable[str], unknown: Iterable[str], champion_problem: str,
    unproven: str = "", altered: str = "",
) -> Finding:
    """The registry against the store: aliases, versions that the store knows and it lacks, and the other way round.

    ``unproven``: why the bounds of the champion, which answers, cannot be checked; ``altered``: why it is not the
    version that was registered.
    """
    check = f"registry {model}"
    if champion_problem:
        return Finding(check=check, state="fail", said=f"its champion cannot be loaded: {champion_problem}",
                       todo=f"promote another version (`ballast model promote {model} VERSION`), or restore a backup")
    if altered:
        return Finding(check=check, state="fail", said=f"its champion is not what was registered: {altered}",
                       todo="somebody wrote to the registry past the service: promote a version that `ballast verify` "
                            "takes, or restore a backup")
    if lost := sorted(missing, key=_number):
        return Finding(check=check, state="fail", said=f"the registry lacks version {', '.join(lost)} of the store",
                       todo="restore the registry from the backup that holds them")
    if unproven:
        said = f"its champion answers, and its bounds cannot be checked: {unproven}"
        return Finding(check=check, state="fail", said=said,
                       todo="restore the registry from the backup that holds the file, or train anew")
    if turned := [str(each) for each in moved]:
        return Finding(check=check, state="warn", said="; ".join(turned),
                       todo="the flows process puts it back within seconds; if it does not run, `ballast up`")
    if foreign := sorted(unknown, key=_number):
        return Finding(check=check, state="warn", said=f"the store does not know version {', '.join(foreign)}",
                       todo="if no run is being registered at this moment: its run failed, and it cannot be promoted")
    return Finding(check=check, state="ok", said="agrees with the store")


def sites(active: Sequence[Site], now: datetime) -> Finding:
    """Plants that are enrolled and not to be heard."""
    presence = {site.site_id: site.presence(now) for site in active}
    said = [f"{site_id} was never there" if found == "never" else f"{site_id} is {found}"
            for site_id, found in sorted(presence.items()) if found != "connected"]
    said += sorted(f"{site.site_id}: {site.notice}" for site in active if site.notice)
    if not said:
        return Finding(check="sites", state="ok", said=f"{len(active)} active, all connected")
    return Finding(
        check="sites", state="warn", said="; ".join(said),
        todo="at the plant: `ballast-site check`, and whether the agent runs and reaches the plant link",
    )


def runs(unfinished: Sequence[Run], now: datetime, *, flows_alive: bool) -> Finding:
    """Runs that nobody drives, or that do not come further."""
    if unfinished and not flows_alive:
        names = ", ".join(run.run_id for run in unfinished)
        return Finding(check="runs", state="fail", said=f"no flows process runs here, and these wait: {names}",
                       todo="`ballast up`; they go on where they were")
    stuck = [run for run in unfinished if now - run.updated_at > STUCK + _round_time(run)]
    if stuck:
        said = "; ".join(f"{run.run_id} ({run.plan.name}) has stood still for {span(now - run.updated_at)}"
                         for run in stuck)
        return Finding(check="runs", state="warn", said=said,
                       todo="`ballast run show RUN_ID` says who is awaited; `ballast run cancel RUN_ID` ends it")
    return Finding(check="runs", state="ok", said=f"{len(unfinished)} unfinished")


def flows(alive: bool | None, idle: timedelta = timedelta()) -> Finding:
    """The process that drives runs; None where it may run elsewhere. ``idle``: since it last looked for what waits."""
    if alive is None:
        return Finding(check="flows process", state="ok",
                       said="not on this home folder; where it runs, `ballast health flows` says whether it does")
    if alive and idle > HANGS:
        return Finding(
            check="flows process", state="fail", said=f"runs, and has not looked for what waits for {span(idle)}",
            todo="where a server above hangs, mend that first; else look at flows.log in the home folder's logs, and "
            "where it stays so, stop `ballast up` and start it again: runs go on where they were",
        )
    if alive:
        return Finding(check="flows process", state="ok", said="runs")
    return Finding(check="flows process", state="warn", said="does not run on this host: no schedule starts anything",
                   todo="`ballast up`")


def webhooks(known: Sequence[Webhook]) -> Finding:
    """Webhooks that were given up, or fail now."""
    off = [hook for hook in known if hook.disabled_at is not None]
    failing = [hook for hook in known if hook.disabled_at is None and hook.failures]
    if off or failing:
        said = [*(f"{hook.webhook_id} is disabled: {hook.last_failure}" for hook in off),
                *(f"{hook.webhook_id} failed {hook.failures} times: {hook.last_failure}" for hook in failing)]
        return Finding(check="webhooks", state="warn", said="; ".join(said),
                       todo="mend the receiver, then `ballast webhook enable ID` and `ballast webhook test ID`")
    return Finding(check="webhooks", state="ok", said=f"{len(known)}, none failing")


def backup(last: datetime | None, now: datetime, restored: datetime | None = None) -> Finding:
    """When the last backup was made; ``restored``: when this home came out of one."""
    if last is None and restored is not None and restored - now > SKEW_WARN:
        return Finding(check="backup", state="warn", todo="`ballast backup FILE`, once the clock is right",
                       said=f"none was made since this home folder was restored from one, {span(restored - now)} after "
                            "now: the clock was put back since")
    if last is None and restored is not None:
        return Finding(check="backup", state="warn", todo="`ballast backup FILE`, by a timer at best",
                       said=f"none was made since this home folder was restored from one, {span(now - restored)} ago")
    if last is None:
        return Finding(check="backup", state="warn", said="none was ever made", todo="`ballast backup FILE`")
    if last - now > SKEW_WARN:
        return Finding(check="backup", state="warn", todo="`ballast backup FILE`, once the clock is right",
                       said=f"the last was made {span(last - now)} after now: the clock was put back since")
    said = f"the last is {span(now - last)} old"
    if now - last <= BACKUP_AGE:
        return Finding(check="backup", state="ok", said=said)
    return Finding(check="backup", state="warn", said=said, todo="`ballast backup FILE`, by a timer at best")


def lost_store(code: str, said: str) -> Finding:
    """A store that cannot be used."""
    return Finding(check="store", state="fail", said=said,
                   todo=STORE_TODO.get(code, "start the database, or mend its address in ballast.toml"))


def _round_time(run: Run) -> timedelta:
    return timedelta(seconds=run.plan.round_deadline_seconds + run.plan.absence_patience_seconds)


def _number(version: str) -> tuple[int, str]:
    return (int(version), "") if version.isdecimal() else (0, version)
