"""Learners at work on the deals of a table, several at a time in processes of their own."""

from __future__ import annotations

import multiprocessing
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from services.contracts.errors import BallastError
from services.contracts.reading import explain
from services.process.end_with_parent import end_with_parent
from tests.benchmarks.accuracy.deal import Part
from tests.benchmarks.accuracy.learners import LEARNERS
from tests.benchmarks.accuracy.outcome import Outcome


def workers(jobs: int) -> AbstractContextManager[Executor | None]:
    """So many processes; none where one is enough, which is this one."""
    if jobs == 1:
        return nullcontext()
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """End with the command, and leave the other processors to the other processes."""
    end_with_parent()
    threadpool_limits(1)


def outcomes(
    learners: Sequence[str], deals: Sequence[tuple[Part, Part]], pool: Executor | None
) -> Iterator[tuple[str, list[Outcome] | str]]:
    """Each learner's outcome of every deal, or why it has none, in their order and as soon as it is known."""
    if pool is None:
        for name in learners:
            yield name, _all(_learnt(name, *deal, seed) for seed, deal in enumerate(deals))
        return
    begun = [(name, [pool.submit(_learnt, name, *deal, seed) for seed, deal in enumerate(deals)]) for name in learners]
    for name, futures in begun:
        yield name, _all(future.result() for future in futures)
        for future in futures:
            future.cancel()


def _all(found: Iterator[Outcome | str]) -> list[Outcome] | str:
    """All outcomes, or the first reason why there is none."""
    together = []
    for each in found:
        if isinstance(each, str):
            return each
        together.append(each)
    return together


def _learnt(name: str, train: Part, test: Part, seed: int) -> Outcome | str:
    try:
        return LEARNERS[name](train, test, seed)
    except Exception as error:  # whatever a learner of others' making ends with, the next ones go on
        return reason(error)


def reason(error: Exception) -> str:
    """Why, in one line; an error that nobody wrote for a reader with its kind."""
    words = explain(error) if isinstance(error, ValidationError) else str(error)
    said = textwrap.shorten(words, 400, placeholder="...")
    return said if isinstance(error, BallastError | ValueError) else f"{type(error).__name__}: {said}"
