r"""How far a plant's readings have moved since it first took part: one number, and for the plant itself each sensor's.

Held against one another are readings under the same sensors, units and ranges, whatever classes and target the asset
type has beside them; under other ones, which scale them otherwise, it begins anew.

Of each sensor p the vault keeps the shares of the first rows in :data:`BINS` equal parts of its range. With F the share
of rows at or below an edge, then and now, the distance is Kolmogorov and Smirnov's on these edges,

    D_p = max_b |F_0p(b) - F_1p(b)|,

and the drift is the largest of them that chance does not explain: two samples of n and m rows of one law stay below
``sqrt(-log(a / 2) / 2) sqrt(1 / n + 1 / m)`` but for a share a of all cases, here one in a thousand over all sensors
(Smirnov's bound; it holds for rows that are drawn apart, and neighbouring moments of one machine are not). Whether a
plant tells its drift is the policy's matter (``tell_drift``); what a sensor did is not told.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from services.contracts.errors import UnavailableError
from services.site_agent.vault.records.exposure_record import ExposureRecordError
from services.site_agent.vault.records.private_database import closed, looked_at, opened

BINS = 32  # of a sensor's range
CHANCE = 1e-3
"""How often a drift of rows of one law is told, at most."""

BEFORE_ANY_JOIN = "No join yet: no first rows are kept to hold these against; the next join keeps them."

_TABLE = (
    "CREATE TABLE IF NOT EXISTS first_rows (contract TEXT PRIMARY KEY, began TEXT NOT NULL, rows INTEGER NOT NULL, "
    "shares BLOB NOT NULL)"
)


@dataclass(frozen=True)
class FirstRows:
    """What is kept of the rows that readings are held against: their number, and F_0 (P, BINS)."""

    began: str
    rows: int
    shares: FloatArray


def _first_rows(began: str, rows: int, shares: bytes) -> FirstRows:
    """What is kept, as it was read; ``ValueError`` or ``TypeError`` for what no join has written, as no shares."""
    found = np.frombuffer(shares).reshape(-1, BINS)
    if not (isinstance(began, str) and rows >= 1 and found.size and (found >= 0).all() and (found <= 1).all()):
        raise ValueError("no join wrote this")
    return FirstRows(began, rows, found)


def shares_below(features: FloatArray) -> FloatArray:
    """F (P, BINS) of features (N, P) in [0, 1]: the share of rows at or below the upper edge of each part."""
    edges = np.arange(1, BINS + 1) / BINS
    return np.asarray((features.T[:, :, np.newaxis] <= edges).mean(axis=1))


def distances(first: FirstRows, features: FloatArray) -> FloatArray:
    """D (P,) of features (N, P) in [0, 1]."""
    return np.asarray(np.abs(shares_below(features) - first.shares).max(axis=1))


def by_chance(first: FirstRows, n_rows: int) -> float:
    """Distance of a sensor that so many rows of the first ones' law may have by chance."""
    share = CHANCE / first.shares.shape[0]
    return math.sqrt(-math.log(share / 2.0) / 2.0 * (1.0 / first.rows + 1.0 / n_rows))


def drift(first: FirstRows, features: FloatArray) -> float:
    """The largest distance of a sensor, in hundredths; 0 where chance may have made it."""
    largest = float(distances(first, features).max())
    return round(largest, 2) if largest > by_chance(first, len(features)) else 0.0


class DriftRecord:
    """The first rows by sensors and ranges, in the private file of the exposure; in memory where no path is given."""

    def __init__(self, path: Path | None, *, looking: bool = False) -> None:
        """Open or begin it, or only look at it; :class:`ExposureRecordError` where that is not possible."""
        self._path = path
        try:
            self._base = (looked_at if looking else opened)(path, _TABLE)
        except (UnavailableError, sqlite3.Error) as error:
            raise self._error(error) from None

    def first(self, sensors: str, former: str = "") -> FirstRows | None:
        """What later rows are held against; None before the first join.

        ``sensors`` is the asset type's ``sensors_fingerprint``, ``former`` the fingerprint of all of it, by which
        records of before are kept.
        """
        found = self._read(sensors)
        return self._read(former) if found is None and former else found

    def _read(self, contract: str) -> FirstRows | None:
        try:
            found = self._base.execute(
                "SELECT began, rows, shares FROM first_rows WHERE contract = ?", (contract,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from None
        try:
            return None if found is None else _first_rows(*found)
        except (TypeError, ValueError):
            why = "it is damaged: no drift can be read from it; `ballast-site drift --from-now` begins anew"
            raise self._error(why) from None

    def begin(self, sensors: str, features: FloatArray, former: str = "", *, anew: bool = False) -> FirstRows:
        """What later rows are held against: these rows where there are none yet, or all is to begin ``anew``."""
        known = None if anew else self.first(sensors)
        if known is not None and known.shares.shape[0] == features.shape[1]:
            return known
        begun = self._read(former) if former and not anew else None
        if begun is None or begun.shares.shape[0] != features.shape[1]:
            begun = FirstRows(datetime.now(UTC).isoformat(), len(features), shares_below(features))
        try:
            with self._base:
                self._base.execute(
                    "INSERT OR REPLACE INTO first_rows VALUES (?, ?, ?, ?)",
                    (sensors, begun.began, begun.rows, begun.shares.tobytes()),
                )
        except sqlite3.Error as error:
            raise self._error(error) from None
        return begun

    def close(self) -> None:
        """Let go of the file."""
        closed(self._base)

    def _error(self, error: Exception | str) -> ExposureRecordError:
        return ExposureRecordError(f"the record of the first rows, {self._path or 'in memory'}, fails: {error}")


def drift_lines(first: FirstRows, features: FloatArray, names: Sequence[str]) -> list[str]:
    """The drift in plain words, for the plant's own screen: the sensors that moved most come first."""
    found, chance = distances(first, features), by_chance(first, len(features))
    lines = [
        f"{len(features)} training rows now, held against {first.rows} of {first.began[:19]}Z; "
        f"a distance up to {chance:.2f} may be chance.",
    ]
    width = max(24, *(len(name) + 1 for name in names))
    for place in np.argsort(-found):
        word = "has moved" if found[place] > chance else "as before"
        lines.append(f"{names[place]:<{width}}{found[place]:6.2f}  {word}")
    return lines
