"""Two sites that tell the same, asked at two points of their own: who only copies then contradicts itself.

One is asked at p and the other at q, at the same time, and then the other way round. Whoever has rows answers each
point by them. Who tells what the other tells has the two answers swapped, and swapped answers of a convex risk
contradict each other: ``<slope_p - slope_q, p - q> >= 0`` turns round. The two signed answers prove it to anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.basics import Arrays, FloatArray
from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Exchange
from services.coordinator.asking.poll import Question, poll
from services.coordinator.asking.ports import SiteTransport
from services.verification.contradiction import verify_evidence, write_evidence
from services.verification.proof import NotProvenError

MOVE = 0.3
"""Distance of the two points from the one of the round, in parts of its largest weight or of 1: rows change sides."""


async def asked_apart(
    question: Question, pair: tuple[str, str], keys: Mapping[str, str], transport: SiteTransport,
    deadline_seconds: float,
) -> dict[str, bytes] | None:
    """Evidence files, by site, against those of a pair that contradict themselves when each is asked alone.

    ``question``: of the round that shows them alike. None where one of them does not answer, or has no key any more:
    nothing is settled then.
    """
    if not all(keys.get(site) for site in pair):
        return None
    arrays = [question.arrays[site] for site in pair]
    if any("point" not in each for each in arrays):
        return {}
    points = [moved(each["point"], f"{question.run_id} {question.round} {k}") for k, each in enumerate(arrays)]
    told: dict[str, list[Exchange]] = {site: [] for site in pair}
    for order in (points, points[::-1]):
        asked = {site: _at(each, point) for site, each, point in zip(pair, arrays, order, strict=True)}
        outcome = await poll(
            replace(question, arrays=asked), {site: keys[site] for site in pair}, transport, deadline_seconds
        )
        for site, exchange in outcome.exchanges.items():
            told[site].append(exchange)
    if any(len(each) < len(points) for each in told.values()):
        return None
    files = {site: write_evidence(question.run_id, site, keys[site], each) for site, each in told.items()}
    return {site: data for site, data in files.items() if _proves(data)}


def moved(point: FloatArray, name: str) -> FloatArray:
    """Point (K, D) beside another, in a direction that the name draws."""
    draw = np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))
    size = max(1.0, float(np.abs(point).max(initial=0.0)))
    return np.asarray(point + MOVE * size * draw.uniform(-1.0, 1.0, point.shape))


def _at(arrays: Arrays, point: FloatArray) -> dict[str, FloatArray]:
    return {**arrays, "point": point}


def _proves(data: bytes) -> bool:
    try:
        return bool(verify_evidence(data))
    except (NotProvenError, InvalidInputError):
        return False
