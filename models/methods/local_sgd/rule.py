"""How a method of local steps asks its sites and goes on: the rule, its messages, and what is drawn in a round.

A rule's memory is a set of arrays, of which ``point`` (D,) is where it stands and ``round`` () counts the rounds of the
paper, which may be two exchanges of messages: first the losses, then the local steps. Rules know nothing of
certificates, so they also drive models whose loss is not convex (see ``models.simulation.local_training``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.fairness.ambiguity_set import RelativeSet
from models.problem import ServerProblem

Memory: TypeAlias = dict[str, FloatArray]
_EXACT = 2**53
"""Whole numbers below it are exact in float64."""


class LocalRule(ABC):
    """How a method asks its sites and what it does with their answers."""

    reads_slopes: ClassVar[bool] = False
    """Whether it goes on by the sites' gradients at the point; those of the others are evidence, and nothing else."""

    @abstractmethod
    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Memory before the first exchange; has ``point`` (D,) and ``round`` ()."""

    @abstractmethod
    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Message for each site: see :func:`message`."""

    @abstractmethod
    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Next memory; absent sites are missing from ``answers``."""

    def asked(self, memory: Memory) -> FloatArray | None:
        """Point at which this exchange learns exact losses; None where it has them already."""
        return memory["point"]

    def ambiguity(self, problem: ServerProblem) -> RelativeSet | None:
        """Set over the sites whose worst member the objective is; None: the problem's own weights.

        With a set, ``shares`` (G,) of the memory is the member of its A that the lower bound is proven with; ``phi``
        (), where it is there, stands for the phi of the set.
        """
        return None

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the rule says of its result: see :meth:`models.methods.protocol.ServerHalf.note`."""
        return ""


def message(
    point: FloatArray,
    *,
    step_size: float = 0.0,
    draw: int = 0,
    correction: FloatArray | None = None,
    snapshot_step: int = 0,
    own_control: bool = False,
) -> dict[str, FloatArray]:
    """Message of ``LocalStepsSite``: where to stand, and how to step from there (``step_size`` 0: not at all).

    ``own_control``: the site takes its own gradient at the point off the correction.
    """
    return {
        "point": point,
        "correction": np.zeros_like(point) if correction is None else correction,
        "step_size": np.array(step_size),
        "draw": np.array(float(draw)),
        "snapshot_step": np.array(float(snapshot_step)),
        **({"own_control": np.array(1.0)} if own_control else {}),
    }


def draw_number(seed: float, round_number: float, index: int) -> int:
    """Number below 2^53, so exact in float64, for what a site draws in a round; its own for each seed, round, site."""
    words = np.random.SeedSequence([int(seed), int(round_number), index]).generate_state(1, np.uint64)
    return int(words[0]) % _EXACT


def server_draws(seed: float, round_number: float) -> np.random.Generator:
    """Random numbers of the server in a round: the same ones whenever the round is taken up again."""
    return np.random.default_rng([int(seed), int(round_number), _EXACT])


def step_messages(
    problem: ServerProblem,
    point: FloatArray,
    number: float,
    sizes: FloatArray,
    *,
    control: FloatArray | None = None,
    snapshot_step: int = 0,
) -> dict[str, dict[str, FloatArray]]:
    """Message for each site: the point, its step of ``sizes`` (G,), and its own draw of exchange ``number``.

    ``control`` (D,): what stands in for the site's own gradient; None: no correction.
    """
    seed = problem.parameters["seed"]
    return {
        site.site_id: message(
            point, step_size=float(sizes[g]), draw=draw_number(seed, number, g), snapshot_step=snapshot_step,
            correction=control, own_control=control is not None,
        )
        for g, site in enumerate(problem.sites)
    }


def step_size(problem: ServerProblem, finished: float) -> float:
    """Step of the round that follows ``finished`` ones: ``step_size / t^step_power``."""
    return float(problem.parameters["step_size"] / (finished + 1.0) ** problem.parameters["step_power"])


def check_clients(clients: int, n_sites: int) -> int:
    """How many sites are drawn in a round, 0 for all; ``ProblemError`` for more than there are."""
    if clients > n_sites:
        raise ProblemError(f"parameter clients must be at most the number of sites, {n_sites}, got {clients}")
    return clients
