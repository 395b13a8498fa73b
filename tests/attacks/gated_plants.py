"""Plants with the default policy, and what a coordinator has of them: answers come through the vault's own gate.

Task -> guard -> site half -> questions without a purpose -> exposure, as ``services.site_agent.door.local_round`` has
it; what leaves is written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.basics import Arrays, FloatArray
from models.cohorts.dealing import Cohorts
from models.losses.catalogue import LossName, get_loss
from models.methods.catalogue import get_method
from models.methods.guard import Guard
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.protocol import Method
from models.methods.row_account import Accounted, RowAccount, accounted_remembering
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from services.site_agent.limits.kinds import kind_of
from services.site_agent.limits.questions import Heads, Questions, check_steepness
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.isolation.span import Figures
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord

STEPS = ("local_point", "snapshot")
"""Arrays of an answer that tell, less where they started from, a sum over rows."""
VECTORS = ("slope", "minorant_slope", *STEPS)


class DrawnRecord(ExposureRecord):
    """A record in memory whose guard draws by a secret that follows from a number and the rows: the same each time."""

    def __init__(self, draw: int, features: FloatArray) -> None:
        """Open it."""
        super().__init__(None)
        self._drawn = hashlib.sha256(draw.to_bytes(8, "big") + np.ascontiguousarray(features).tobytes()).digest()

    def secret(self) -> bytes:
        """What the guard draws by."""
        return self._drawn


@dataclass
class Plant:
    """One plant; ``sent`` holds the arrays of each answer, steps less their start, ``accounts`` its own accounts.

    ``part``: its rows; ``gate``: what an answer passes before it leaves; ``draw``: the number that its guard draws by.
    """

    problem: SiteProblem
    policy: SitePolicy = field(default_factory=SitePolicy)
    draw: int = 0
    sent: list[dict[str, FloatArray]] = field(default_factory=list)
    accounts: list[RowAccount] = field(default_factory=list)
    refused: str = ""

    def __post_init__(self) -> None:
        """Open the vault."""
        outcomes, count = self.problem.labels, self.problem.labels.shape[0]
        if self.problem.spec.loss.task == "regression":
            self.part = Part(self.problem.features, np.full(count, -1), outcomes)
        else:
            self.part = Part(self.problem.features, (outcomes > 0).astype(np.intp), np.full(count, np.nan))
        self.gate = ExposureGate(DrawnRecord(self.draw, self.problem.features), self.policy)
        self._questions, self._heads = Questions(), Heads((self.problem,))
        self.figures = Figures(count)

    @property
    def rows(self) -> FloatArray:
        """Rows (N, D) as they stand in a slope: the intercept's 1 last."""
        return np.column_stack([self.problem.features, np.ones(self.problem.labels.shape[0])])

    def answer(
        self, method: Method, message: Arrays, parameters: Mapping[str, float], memory: Arrays, run: str
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """What leaves, and the memory after it; ``Refusal`` where the plant says no."""
        known = np.ones(self.problem.labels.shape[0], dtype=bool)
        complete = {**parameters, "least_rows": float(self.policy.min_samples)}
        try:
            self.gate.check_budget(self.part, run)
            kind = kind_of(repr(self.problem.spec.loss), message)
            guard = self.gate.guard(self.part, known, kind=kind)
            found, kept = accounted_remembering(method.site, self.problem, message, complete, memory, guard)
            headed = {name: np.asarray(array)[None] for name, array in message.items()}
            points = [message["point"]] if "point" in message else list(message["points"])
            if not method.ignores_radius:
                for point in points:
                    check_steepness(point[None], self._heads, self.policy.steepness_limit)
            if "point" in message:
                self._questions.check_nearness(run, headed, self._heads, self.policy.nearness_limit)
            self.figures = self.gate.admit(self.part, known, run, found.account, guard.choices, kind)
        except Refusal as refusal:
            self.refused = refusal.refusal_code
            raise
        self._questions.note(run, headed, np.atleast_1d(found.arrays["risk"]))
        self.sent.append({**found.arrays, **_steps(method, message, parameters, found.arrays)})
        self.accounts.append(found.account)
        return found, kept

    def vectors(self) -> FloatArray:
        """Every vector that left, (M, D)."""
        return stacked([self.sent])


def _steps(
    method: Method, message: Arrays, parameters: Mapping[str, float], answer: Arrays
) -> dict[str, FloatArray]:
    """What the ends of steps say of the slopes that made them: mean gradients, or the slope of a prox step."""
    found = {}
    for name in STEPS:
        if name not in answer:
            continue
        if "centre" in message:
            size = float(message.get("penalty", 1.0 / (float(message.get("stiffness", 1.0)) or 1.0))) or 1.0
            found[name] = size * (message["centre"] - answer[name])
            continue
        one = isinstance(method.site, LocalStepsSite) and method.site.one_step
        steps = 1 if one else int(parameters.get("local_steps", 0)) or int(parameters.get("epochs", 1))
        steps = min(int(message["snapshot_step"]), steps) if name == "snapshot" else steps
        found[name] = (message["point"] - answer[name]) / ((float(message["step_size"]) or 1.0) * max(steps, 1))
    return found


@dataclass(frozen=True)
class Doors:
    """The plants as one site half: each problem is answered by its plant."""

    plants: Mapping[int, Plant]
    method: Method
    run: str

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """What the plant lets out."""
        return self.answer_remembering(problem, message, parameters, {})[0].arrays

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
        guard: Guard | None = None,
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """The same from a memory."""
        return self.plants[id(problem.features)].answer(self.method, message, parameters, memory, self.run)


def stacked(answers: Sequence[Sequence[Arrays]]) -> FloatArray:
    """Vectors (M, D) of the sums of answers: ``answers`` are the lists of the plants that are summed."""
    found = list[FloatArray]()
    for parts in zip(*answers, strict=True):
        for name in VECTORS:
            if name in parts[0]:
                found.extend(np.atleast_2d(np.sum([part[name] for part in parts], axis=0)))
    return np.array(found)


def dealt(
    features: FloatArray, labels: FloatArray, n_sites: int, method: Method, loss_name: LossName = "hinge"
) -> dict[str, SiteProblem]:
    """Rows dealt to plants at random, the default radius of a plan; a smooth loss where the method needs one."""
    loss = get_loss("smooth_hinge" if method.needs_smooth_loss else loss_name)
    order = np.random.default_rng(0).permutation(labels.shape[0])
    return {
        f"plant-{number + 1}": SiteProblem(
            features[part], labels[part], RobustSpec(radius=1.0 / (10.0 * part.size), label_flip_cost=1.0, loss=loss)
        )
        for number, part in enumerate(np.array_split(order, n_sites))
    }


def honest_run(
    plants: Mapping[str, Plant], name: str, *, cohorts: Cohorts | None = None, run: str = "run-1", max_rounds: int = 12,
) -> None:
    """One run of the method to a gap of 1e-3 at most; it ends where a plant refuses."""
    method = get_method(name)
    sites = {site: plant.problem for site, plant in plants.items()}
    doors = Doors({id(plant.problem.features): plant for plant in plants.values()}, method, run)
    try:
        train(sites, method=name, gap=1e-3, max_rounds=max_rounds, site_half=doors, cohorts=cohorts)
    except Refusal:
        pass


def question(method: Method, plane: FloatArray) -> dict[str, FloatArray]:
    """A message of a method that asks at a plane (D,), for its cut alone where the method lets one choose."""
    scalars = {
        "step_size": 0.0, "draw": 1.0, "snapshot_step": 0.0, "price": float(np.linalg.norm(plane[:-1])), "target": 0.0,
        "penalty": 1.0, "ridge": 0.0, "stiffness": 0.0, "inner": 1.0, "share": 0.5,
    }
    if method.name == "cohort-bundle":
        count = int(method.parameters["questions"])
        nowhere = np.zeros((count, plane.size))
        return {
            "points": np.tile(plane, (count, 1)), "centre": np.tile(plane, (count, 1)), "penalty": np.ones(count),
            "counted": np.zeros((count, 0)), "of_norm": nowhere, "sides": nowhere[:, :-1],
        }
    vectors = {"point": plane, "centre": plane, "correction": np.zeros_like(plane)}
    return vectors | {name: np.array(value) for name, value in scalars.items()}
