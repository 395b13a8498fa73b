"""What every training method is: a site half and a server half.

A site half is a pure function of local data and a message: it keeps nothing between rounds, so a repeated message
gets the same answer and a restarted site goes on as if nothing had been. All that a method must remember is in the
server's state, which is model-sized and is committed with the round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

from models.basics import Arrays, FloatArray
from models.cuts.carried_proof import CarriedProof
from models.cuts.contradiction import Contradiction
from models.losses.base import Loss
from models.problem import Certificate, ServerProblem, SiteProblem, Status
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall

StateT = TypeVar("StateT")
SupportKind = Literal["unbounded", "box", "polytope"]
OverSites = Literal["stated", "stated or every", "every"]
"""Mixtures that a method reckons with: those of the ball stated, all where none is stated, or all."""
NO_PARAMETERS: Final[Mapping[str, float]] = MappingProxyType({})
"""For methods whose answers look alike whatever their parameters."""
LOCAL_BUNDLE: Final = "local bundle of exact cuts"
"""What takes a proximal step wherever the quickest solver does not fit."""


class SiteHalf(Protocol):
    """The part of a method that runs in a plant."""

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Answer the server's message with arrays whose shapes depend on the model alone, never on the rows."""


@runtime_checkable
class ForgetsSites(Protocol):
    """A server half that can forget what one site said and keep the rest; others begin anew."""

    def anew(self, state: Any, site: int) -> Any:
        """State after a site, by index, became another: what it said before is of no use."""
        ...


@runtime_checkable
class StartsWarm(Protocol):
    """A server half that can begin where an earlier run on much the same sites ended; others begin with nothing."""

    def warm(self, earlier: Any, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]) -> Any:
        """State before the first round on ``problem``, from the last one of an earlier run on ``before``.

        ``kept`` (G,): place of each site in the earlier run where its risk is the same function, else -1. Of the others
        nothing counts in a bound; what was asked of them may say where to look.
        """
        ...

    def forget_earlier(self, state: Any, site: int) -> Any:
        """State without what was taken over of a site, by index."""
        ...


@runtime_checkable
class AnswersLate(Protocol):
    """A server half to which a site may answer an earlier question (``models.methods.bundle.asynchronous``)."""

    def open_rounds(self, state: Any, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the question that each site at work was asked, by site id; its message is that question's."""
        ...

    def asks_next(self, state: Any, problem: ServerProblem) -> set[str]:
        """Idle sites that are to be asked next."""
        ...

    def away(self, state: Any, problem: ServerProblem) -> set[str]:
        """Sites that entered the last upper bound by their cuts."""
        ...

    def told_rounds(self, state: Any, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the newest question that each site answered, by site id; 0 where it answered none."""
        ...

    def step_late(
        self, state: Any, problem: ServerProblem, answers: Mapping[str, Arrays], due: Collection[str],
        away: Collection[str],
    ) -> Any:
        """Next state from new and late answers; those of ``due`` are still to come, ``away`` is not waited for."""
        ...


class ServerHalf(Protocol[StateT]):
    """The part of a method that runs at the OEM. Pure: the state goes in, the next state comes out."""

    def init(self, problem: ServerProblem) -> StateT:
        """State before the first round."""

    def messages(self, state: StateT, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Message for each site, by site id."""

    def step(self, state: StateT, problem: ServerProblem, answers: Mapping[str, Arrays]) -> StateT:
        """Next state from the answers of the sites that were there; the absent are missing from ``answers``."""

    def answer_shapes(
        self, dimension: int, n_swings: int = 0, parameters: Mapping[str, float] = NO_PARAMETERS
    ) -> dict[str, tuple[int, ...]]:
        """Names and shapes that a valid answer has: what admission holds an answer to.

        ``dimension`` D of the weights; ``n_swings``: length of a cut's swing, 0 where cuts have none. ``parameters``:
        those of the method.
        """

    def status(self, state: StateT, problem: ServerProblem) -> Status:
        """Whether to go on."""

    def certificate(self, state: StateT) -> Certificate:
        """Bounds after the last step."""

    def weights(self, state: StateT) -> FloatArray:
        """Best weights so far, shape (P,) or (P + 1,) with the intercept last."""

    def site_risks(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst-case risk of each site at the best weights; NaN where the site did not answer there."""

    def mixture_weights(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best weights, in the ball over the sites; it sums to 1."""

    def convex_part(self, state: StateT) -> Certificate | None:
        """Bounds of the convex majorant of an objective that is not convex; None where it is."""

    def note(self, states: Sequence[StateT], problem: ServerProblem) -> str:
        """What the bounds speak of, or whether convergence is proven: one line for who reads the result, often empty.

        ``states`` are those of all heads.
        """

    def contradictions(
        self, state: StateT, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """Sites whose answers, with those that they gave earlier, belong to no convex risk; by site id."""

    def false_ends(
        self, state: StateT, problem: ServerProblem, point: FloatArray, risks: Mapping[str, float]
    ) -> dict[str, Contradiction]:
        """Sites whose risk at the end, at a point (D,), cannot be true beside what they answered; by site id."""

    def of_sites(self, state: StateT, problem: ServerProblem, kept: Sequence[int]) -> StateT:
        """State of a run that goes on with some of its sites, by index; ``problem`` is that of those sites."""

    def carried_proof(self, state: StateT, problem: ServerProblem) -> CarriedProof | None:
        """What proves the bounds of the worst mixture's risk to others; None where there is nothing."""
        ...

    def pack(self, state: StateT) -> dict[str, FloatArray]:
        """State as arrays of float64, exactly."""

    def unpack(self, arrays: Arrays) -> StateT:
        """State from :meth:`pack`."""


WORST_CASE: Final = "worst-case risk over the balls, in the worst mixture stated"
"""What a robust method minimises: the risk that a problem states."""


@dataclass(frozen=True)
class Range:
    """Finite values from ``low`` to ``high``; ``open_low``, ``open_high``: without that end; ``whole``: whole ones."""

    low: float
    high: float
    open_low: bool = True
    open_high: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (value < self.high or not self.open_high and value == self.high)
            and (value > self.low or not self.open_low and value == self.low)
            and (not self.whole or float(value).is_integer())
        )

    def __str__(self) -> str:
        low = "above" if self.open_low else "at or above"
        high = "below" if self.open_high else "at most"
        text = f"{low} {self.low:g}" + (f" and {high} {self.high:g}" if math.isfinite(self.high) else "")
        return f"a whole number {text}" if self.whole else text


def risk_solver(loss: Loss, support: SupportKind) -> str:
    """What finds the worst-case risk at a point (``models.worst_case.risk``)."""
    if support == "polytope":
        return "worst case on a polytope by CVXPY with Clarabel"
    if support == "box":
        return "exact worst case by price search"
    return "exact worst case by selection" if loss.task == "classification" else "exact worst case in closed form"


def prox_solver(loss: Loss, support: SupportKind) -> str:
    """What takes a proximal step (``models.prox.bundle``)."""
    if loss.name == "hinge" and support == "unbounded":
        return "active sets on a working set with an interior point behind them"
    return LOCAL_BUNDLE


@dataclass(frozen=True)
class Method:
    """A named pair of halves; ``parameters`` are its own numbers with their defaults.

    ``site_solver`` says what runs at a site; in it ``{risk}`` and ``{prox}`` stand for what the loss and the support
    decide (:func:`risk_solver`, :func:`prox_solver`).
    ``trusts_labels``: the method trains with an infinite label flip cost, whatever the problem says.
    ``ignores_radius``: the method trains with radius 0, that is, without a ball, whatever the problem says.
    ``objective``: what its bounds and its gap are of, in plain words; :data:`WORST_CASE` where it is what the problem
    states, and only there they say how far the weights are from the best robust ones.
    ``needs_smooth_loss``: its steps rest on gradients that change continuously.
    ``needs_unbounded``: it trains without a support of the features only.
    ``supports_mixture``: it can train against the worst mixture of the sites, not only with fixed weights.
    ``over_sites``: the mixtures that it reckons with (:meth:`ball_over_sites`).
    ``on_sums``: with fixed weights its server half uses the answers only in sums, so a cohort of plants, by the
    weighted mean of their answers, may stand where it has a site (``models.cohorts``).
    ``check``: refuses parameters that do not go together, each of them within its range.
    """

    name: str
    site: SiteHalf
    server: ServerHalf[Any]
    parameters: Mapping[str, float]
    summary: str
    site_solver: str
    trusts_labels: bool = False
    objective: str = WORST_CASE
    supports_mixture: bool = True
    over_sites: OverSites = "stated"
    ignores_radius: bool = False
    needs_smooth_loss: bool = False
    needs_unbounded: bool = False
    on_sums: bool = False
    check: Callable[[Mapping[str, float]], None] | None = None

    @property
    def is_robust(self) -> bool:
        """Whether it minimises the worst-case risk that the problem states."""
        return self.objective == WORST_CASE

    def ball_over_sites(self, stated: MixtureBall) -> MixtureBall:
        """The ball over the sites of whose worst mixture its bounds are, where a plan states ``stated``."""
        every = self.over_sites == "every" or (self.over_sites == "stated or every" and stated.radius == 0)
        return WHOLE_SIMPLEX if every else stated

    def place(self, support: SupportKind) -> SupportKind:
        """The support that counts: none where nothing is moved."""
        return "unbounded" if self.ignores_radius else support

    def solver_names(self, *, loss: Loss, support: SupportKind) -> tuple[str, ...]:
        """What solves the sites' problems, one name for each part."""
        place = self.place(support)
        named = self.site_solver.format(risk=risk_solver(loss, place), prox=prox_solver(loss, place))
        return tuple(named.split("; "))
