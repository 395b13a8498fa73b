"""What the site's files say, as plain data for the pages and for JSON. A file that fails is a line of ``trouble``."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from services.contracts.documents import to_plain
from services.contracts.errors import BallastError
from services.contracts.plain_words import joined
from services.site_agent.agent import drift, exposure
from services.site_agent.console.ledger_view import LedgerView
from services.site_agent.health import check_alive, note, told_by
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings

DRIFT_SECONDS = 60.0
"""For so long a drift is shown as it was found: finding it reads the plant's data."""


class SiteState:
    """Reads the site's files; writes and sends nothing. For several threads."""

    def __init__(
        self, settings: SiteSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.ledger = LedgerView(settings.ledger)
        self._now, self._clock = now, clock
        self._mutex = threading.Lock()
        self._drift: tuple[float, dict[str, Any]] | None = None

    def overview(self) -> dict[str, Any]:
        """What counts on the first page, with what wants attention first."""
        ledger, policy = self.ledger.summary(self._now()), self.policy()
        found = {
            "site_id": self.settings.site_id, "connection": self.connection(), "ledger": ledger,
            "exposure": self.exposure(), "drift": self.drift(), "policy": policy,
        }
        return found | {"attention": attention(found)}

    def connection(self) -> dict[str, Any]:
        """Whether an agent is connected, when it was last seen so, and that in words."""
        try:
            since = check_alive(self.settings)
            told, connected = joined(f"seen {since:.0f} s ago", told_by(self.settings)), True
        except BallastError as error:
            told, connected = str(error), False
        try:
            seen = datetime.fromtimestamp(note(self.settings).stat().st_mtime, UTC)
        except OSError:
            seen = None
        return {"connected": connected, "seen": seen, "told": told}

    def exposure(self) -> dict[str, Any]:
        """Figures and sentences of what the answers isolate."""
        return _read(lambda: exposure(self.settings), "answers")

    def drift(self) -> dict[str, Any]:
        """Figures and sentences of how far readings moved; ``drift`` None before the first join; none is begun."""
        with self._mutex:
            if self._drift is not None and self._clock() < self._drift[0]:
                return self._drift[1]
            found = _read(lambda: drift(self.settings, looking=True), "drift")
            if found["trouble"] is None:
                self._drift = (self._clock() + DRIFT_SECONDS, found)
            return found

    def policy(self) -> dict[str, Any]:
        """The policy's fields and its path."""
        path = str(self.settings.policy)
        try:
            policy = SitePolicy.from_toml(self.settings.policy)
        except BallastError as error:
            return {"path": path, "policy": None, "trouble": str(error)}
        return {"path": path, "policy": to_plain(policy), "trouble": None}


def attention(found: dict[str, Any]) -> list[dict[str, str]]:
    """What somebody should look at, the worst first: a word, a sentence, and the page that says more, if one does."""
    ledger, exposed, drifted = found["ledger"], found["exposure"], found["drift"]
    listed: list[dict[str, str]] = []

    def add(kind: str, what: str, why: str, page: str) -> None:
        listed.append({"kind": kind, "what": what, "why": why, "page": page})

    if not ledger["sound"]:
        add("bad", "The ledger is not what was written", ledger["problems"][0], "/ledger")
    for name, page in (("policy", "/policy"), ("exposure", "/exposure")):
        if found[name]["trouble"] is not None:
            add("bad", f"The {name} cannot be read", found[name]["trouble"], page)
    rows = exposed.get("rows", 0)
    if exposed.get("unaccounted"):
        why = f"all {rows} rows are counted as told; allow_unaccounted = false in the policy refuses such answers"
        add("info", "Answers said more than can be counted", why, "/exposure")
    elif exposed.get("by_differences", 0) > exposed.get("exposure_limit", 1.0) * rows:
        why = f"{exposed['by_differences']} of {rows} rows, the policy allows {int(exposed['exposure_limit'] * rows)}"
        add("bad", "Answers isolate more rows than the policy allows", why, "/exposure")
    if exposed.get("runs_left_today") == 0:
        add("warn", "The budget of runs is spent", "No further run is answered in these 24 hours", "/exposure")
    if not found["connection"]["connected"]:
        add("warn", "No agent is connected", found["connection"]["told"], "")
    if drifted["trouble"] is not None:
        add("warn", "The data cannot be read", drifted["trouble"], "/drift")
    if drifted.get("drift"):
        moved = sum(distance > drifted["chance"] for distance in drifted["sensors"].values())
        why = f"{moved} of {len(drifted['sensors'])} sensors, the furthest by {drifted['drift']:.2f}"
        add("warn", "Readings have moved since the first run", why, "/drift")
    refused = ledger.get("refusals_of_a_day", 0)
    if refused:
        add("info", "Tasks were refused", f"{refused} in the last 24 hours; the ledger says which", "/ledger")
    return listed


def _read(account: Callable[[], tuple[dict[str, Any], list[str]]], figure: str) -> dict[str, Any]:
    """Figures, sentences under ``told``, and ``trouble``; the figure is None where a file fails."""
    try:
        figures, lines = account()
    except BallastError as error:
        return {figure: None, "told": [], "trouble": str(error)}
    except (ValueError, TypeError, LookupError, OSError, sqlite3.Error):  # a damaged record fails wherever it is read
        return {figure: None, "told": [], "trouble": f"the record is damaged: no {figure} can be read from it"}
    return {**figures, "told": lines, "trouble": None}
