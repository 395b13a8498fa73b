"""Calibration of a version: what the plants' counts of held-out scores make of sets, intervals and probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from models.basics import FloatArray, ProblemError
from models.conformal.coverage import asked_level, least_threshold, rows_needed, tail_level
from models.conformal.grid import score_grid
from models.conformal.spread import SPREAD_GRID_NUMBER, STEPS, TENTHS, Shape, residual_grid, tenth_of
from models.conformal.temperature import SCALES
from services.contracts.base import Contract
from services.contracts.errors import ConflictError, InvalidInputError

COVERAGE: Final = 0.9
"""Coverage of sets and intervals where nobody asks for another."""

NOVELTY: Final = 0.05
"""Share of measurements like the held-out ones that are taken for unlike them at most."""

ROWS: Final = ("error", "size", "reach")
"""What is counted on the grid, a row of the counts each: ``models.conformal.scores``."""

Coverage = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
"""A number, as readings are: a text is refused, never guessed at."""
Over = Literal["every group", "mixture"]
"""Of whom the coverage is: of each group whose counts are known, or of the mixtures in a ball around the weights."""

Kind = Literal["sets", "absolute", "tails", "spread"]
"""sets of classes; intervals from the size of the residual; intervals with as much beyond the one end as the other;
intervals as wide, below and above, as the errors are in the estimate's tenth of the range."""


def calibration_shapes(*, classes: bool, by_estimate: bool = False) -> dict[str, tuple[int, ...]]:
    """Shapes of what a plant answers: whole numbers alone."""
    shapes: dict[str, tuple[int, ...]] = {"counts": (len(ROWS), len(score_grid())), "n_test": ()}
    if by_estimate:
        fine, coarse = len(residual_grid()), len(residual_grid(coarse=True))
        shapes |= {"by_estimate": (TENTHS, fine), "training": (TENTHS, coarse), "n_train": ()}
    return shapes | ({"confidences": (len(SCALES),), "right": ()} if classes else {})


class CountedRows(Contract):
    """Held-out rows of one group: a plant, or a cohort of ``plants`` of which only the sum is known."""

    n_test: int = Field(ge=0)
    plants: int = Field(default=1, ge=1)


class Spread(Contract):
    """Lags of the two ends by tenth of the estimate, in steps, as ``models.conformal.spread`` has them on ``grid``."""

    grid: Literal[2] = SPREAD_GRID_NUMBER
    below: tuple[int, ...]
    above: tuple[int, ...]

    @model_validator(mode="after")
    def _is_a_shape(self) -> Self:
        try:
            self.shape  # noqa: B018  # making it checks it
        except ProblemError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def shape(self) -> Shape:
        """The shape with these lags."""
        return Shape(np.array(self.below, dtype=np.intp), np.array(self.above, dtype=np.intp))


class Calibration(Contract):
    """From which threshold on the grid is how much held, as the theorem of ``models.conformal.coverage`` has it.

    ``held`` by name: ``error`` (T,) of sets; ``absolute`` (H,) at the thresholds from 0 on; ``below`` and ``above``
    (T,) of the two tails; ``spread`` (S,) at the steps of the shape ``spread``; ``size`` and ``reach`` (T,) over all
    rows together. ``coverage`` is that of answers that ask for none, ``asked``: the plan asked for it. ``shift`` is in
    total variation. ``scale`` is that of the probabilities. ``missing`` plants counted nothing. ``note`` says why there
    is less than all of it.
    """

    kind: Kind
    coverage: Coverage = COVERAGE
    asked: bool = False
    shift: float = Field(default=0.0, ge=0, lt=1)
    over: Over = "every group"
    groups: tuple[CountedRows, ...] = ()
    missing: int = 0
    grid: tuple[float, ...] = ()
    held: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    scale: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    note: str = ""
    spread: Spread | None = None

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        full, lengths = len(self.grid), {"absolute": len(self.grid) // 2 + 1, "spread": STEPS}
        for name, shares in self.held.items():
            if len(shares) != lengths.get(name, full):
                raise ValueError(f"held {name} has {len(shares)} shares, the grid has {full} thresholds")
        if ("spread" in self.held) != (self.spread is not None):
            raise ValueError("held shares of a spread go with its shape, and it with them")
        return self

    @property
    def n_test(self) -> int:
        """Held-out rows of all groups."""
        return sum(group.n_test for group in self.groups)

    @property
    def most(self) -> float:
        """Coverage that the counts are good for at most, under the stated shift; 0 without counts."""
        names = {
            "sets": ("error",), "absolute": ("absolute",), "tails": ("below", "above"), "spread": ("spread",),
        }[self.kind]
        if any(name not in self.held for name in names):
            return 0.0
        best = min(max(self.held[name]) for name in names)
        return max(0.0, (2.0 * best - 1.0 if self.kind == "tails" else best) - self.shift)

    def lacks(self, coverage: float) -> str:
        """Why there is no set or interval of this coverage, on one line; empty where there is one."""
        try:
            level = asked_level(coverage, self.shift)
        except ProblemError as error:
            return str(error)
        if not self.held:
            return f"the version has no calibration: {self.note or 'no plant counted its held-out rows'}"
        if self.most >= coverage - 1e-12:
            return ""
        needed = rows_needed(tail_level(level) if self.kind == "tails" else level)
        fewest = min(group.n_test // group.plants for group in self.groups)
        where = "every plant or cohort" if self.over == "every group" else "the mixture of the plants"
        shift = f" under a shift of {self.shift:g}" if self.shift else ""
        most = math.floor(1e4 * self.most) / 1e4
        return (
            f"coverage {coverage:g}{shift} over {where} needs {needed} held-out rows a plant, the fewest there are "
            f"{fewest}: " + (f"ask for {most:g} or less" if most > 0.0 else "they are good for none")
        )

    def check(self, coverage: float | None) -> float | None:
        """Coverage of an answer: the asked one, or the version's; None where that is not to be had.

        Raises
        ------
        InvalidInputError
            The coverage asked for is none between 0 and 1.
        ConflictError
            The version's counts are too few for it.
        """
        if coverage is None:
            return None if self.lacks(self.coverage) else self.coverage
        if not 0.0 < coverage < 1.0:
            raise InvalidInputError(f"coverage must lie between 0 and 1, both excluded, got {coverage:g}")
        if lack := self.lacks(coverage):
            raise ConflictError(lack, code="coverage_not_available")
        return coverage

    def threshold(self, coverage: float) -> float:
        """Largest nonconformity of a class that belongs to a set."""
        return self._at("error", asked_level(coverage, self.shift), self._grid)

    def interval(self, coverage: float, estimates: FloatArray) -> FloatArray:
        """Ends (2, n) of the intervals around scaled estimates (n,): scaled targets, not cut to their range."""
        if self.spread is None:
            low, high = self.residuals(coverage)
            return np.stack([estimates - high, estimates - low])
        least, most = self.spread_ends(coverage)
        cut, tenths = np.clip(estimates, 0.0, 1.0), tenth_of(estimates)
        return np.stack([cut - most[tenths], cut - least[tenths]])

    def spread_ends(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Least and largest residual (10,) by tenth of the estimate; ``ConflictError`` of another kind."""
        if self.spread is None:
            raise ConflictError(f"intervals of the kind {self.kind} do not go by the estimate")
        step = least_threshold(np.asarray(self.held["spread"]), asked_level(coverage, self.shift))
        return (np.full(TENTHS, -np.inf), np.full(TENTHS, np.inf)) if step is None else self.spread.shape.ends(step)

    def residuals(self, coverage: float) -> tuple[float, float]:
        """Least and largest residual (estimate minus target, scaled) of intervals that do not go by the estimate."""
        level = asked_level(coverage, self.shift)
        if self.kind == "absolute":
            size = self._at("absolute", level, self._grid[len(self.grid) // 2 :])
            return -size, size
        tail = tail_level(level)
        # The lower end is the largest threshold with enough above it: read from the other side.
        above = np.asarray(self.held["above"])[::-1]
        place = least_threshold(above, tail)
        low = -np.inf if place is None else float(self._grid[::-1][place])
        return low, self._at("below", tail, self._grid)

    def strangest(self, name: Literal["size", "reach"]) -> float:
        """Value above which a measurement is unlike the held-out ones; infinite where there are too few to tell."""
        return self._at(name, 1.0 - NOVELTY / 2.0, self._grid)

    @property
    def _grid(self) -> FloatArray:
        return np.asarray(self.grid)

    def _at(self, name: str, level: float, grid: FloatArray) -> float:
        place = least_threshold(np.asarray(self.held[name]), level) if name in self.held else None
        return float("inf") if place is None else float(grid[place])


class CalibrationFacts(Contract):
    """What readers see of a calibration, without a plant's name.

    ``half_width`` is that of the interval of ``coverage`` in the target's unit (None: sets, or two unlike ends);
    ``widths`` are those by tenth of the target's range in which the estimate lies, before they are cut to the range.
    ``tells_unlike``: whether answers may call a measurement unlike the held-out ones (None: told before it was known).
    """

    kind: Kind
    coverage: float
    available: bool
    shift: float
    over: Over
    groups: int
    n_test: int
    missing: int
    most_coverage: float
    scale: float | None
    half_width: float | None = None
    widths: tuple[float, ...] | None = None
    tells_unlike: bool | None = None
    note: str = ""

    @classmethod
    def of(cls, found: Calibration | None, width: float | None = None) -> CalibrationFacts | None:
        """Facts of a calibration; ``width`` is that of the target's range."""
        if found is None:
            return None
        lack = found.lacks(found.coverage)
        half, widths = None, None
        if width is not None and found.kind == "absolute" and not lack:
            half = width * found.residuals(found.coverage)[1]
        if width is not None and found.spread is not None and not lack:
            low, high = found.spread_ends(found.coverage)
            widths = tuple((width * (high - low)).tolist())
        return cls(
            kind=found.kind, coverage=found.coverage, available=not lack, shift=found.shift, over=found.over,
            groups=len(found.groups), n_test=found.n_test, missing=found.missing, most_coverage=found.most,
            scale=found.scale, half_width=half, widths=widths, note=lack or found.note,
            tells_unlike=math.isfinite(min(found.strangest("size"), found.strangest("reach"))),
        )
