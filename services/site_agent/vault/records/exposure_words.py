"""The exposure in plain words, for the plant's own screen: read from the record alone, no data are opened."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from services.contracts.plain_words import counted
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.isolation.span import LEAST_LEVERAGE
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.version_exposure import Exposure


def exposure_summary(path: Path, policy: SitePolicy, now: datetime | None = None) -> dict[str, Any]:
    """Figures of the training rows that were answered about last, with the limits and what is left of the budgets.

    ``{"answers": 0}`` where nothing was answered yet. Raises ``ExposureRecordError`` where the record cannot be read.
    """
    if not path.exists():
        return {"answers": 0}
    record = ExposureRecord(path, looking=True)
    try:
        latest = record.latest()
        if latest is None:
            return {"answers": 0}
        digest, n_rows, used = latest
        figures = Exposure(digest, n_rows, record.stored(digest, n_rows)).figures()
        runs = record.runs(digest)
        today = record.budget("", "", ((now or datetime.now(UTC)) - timedelta(days=1)).isoformat()).other_runs
    finally:
        record.close()
    last = max((run[2] for run in runs), default=0)
    return {
        **asdict(figures), "data": digest, "last_answer": used, "answers": sum(run[2] for run in runs),
        "runs": len(runs), "runs_today": today, "most_answers_in_a_run": last,
        "exposure_limit": policy.exposure_limit, "leverage_limit": policy.leverage_limit,
        "runs_left_today": None if policy.max_runs_per_day is None else max(policy.max_runs_per_day - today, 0),
        "answers_a_run": policy.max_answers_per_run,
    }


def exposure_lines(summary: dict[str, Any]) -> list[str]:
    """The summary as sentences."""
    if not summary["answers"]:
        return ["Nothing has been answered about the data yet."]
    rows, left = summary["rows"], summary["runs_left_today"]
    return [
        f"{counted(summary['answers'], 'answer')} in {counted(summary['runs'], 'run')} about the present {rows} "
        f"training rows, the last at {summary['last_answer'][:19]}Z; {summary['vectors']} different vectors have left.",
        *(_all_count(summary) if summary["unaccounted"] else _found(summary)),
        "Budget: " + (
            "any number of runs a day" if left is None else f"{left} more runs in these 24 hours"
        ) + (
            "; any number of answers in a run." if summary["answers_a_run"] is None
            else f"; {summary['answers_a_run']} answers in a run, the most so far {summary['most_answers_in_a_run']}."
        ),
    ]


def _found(summary: dict[str, Any]) -> list[str]:
    """What was found in the answers, where all that they say is accounted for."""
    rows = summary["rows"]
    return [
        f"{summary['by_pairs']} of {rows} rows can be read off exactly from one answer or the difference of two.",
        f"{summary['by_differences']} of {rows} rows can be read off with differences of differences too; "
        f"the policy allows {int(summary['exposure_limit'] * rows)}.",
        f"The highest leverage of a row over all answers is {summary['leverage']:.3f}; {summary['leveraged']} rows are "
        f"at {LEAST_LEVERAGE} or above: who knew the coefficients of every answer could isolate them. "
        f"The policy allows {int(summary['leverage_limit'] * rows)}.",
    ]


def _all_count(summary: dict[str, Any]) -> list[str]:
    """Where an answer said more than its account has, each row is counted as told, and nobody found it in anything."""
    return [
        f"All {summary['rows']} rows are counted as told, for {counted(summary['unaccounted'], 'answer')} said more "
        "than can be counted: where steps of local training ended, what moves inside a box of sensor ranges adds, or "
        "what a lift tells beside the readings. That any row can be read off is not said by this; that none can is "
        "not, either. The policy refuses such answers with allow_unaccounted = false.",
    ]
