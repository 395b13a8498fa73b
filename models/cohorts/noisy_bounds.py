r"""Noisy sums on the server: bounds that hold with a stated probability, and the questions that go with them.

**Bounds.** The best weights u* with ``||u*||_2 <= within`` do not depend on the noise, so at them a noisy plane is off
by a sum with variance ``V = sigma_offset^2 + sigma_slope^2 within^2``: above by more than ``sqrt(2 V log(1/beta))``
with probability beta at most (discrete Gaussians are subgaussian; Canonne, Kamath and Steinke 2020). Planes are lowered
and risks raised by that much, beta being the plan's share for one of all risks and planes of the run. So with its
confidence no weights within the norm have a risk below the lower bound, and the version's is at most the upper one.
A plane may well lie above the risk elsewhere: contradictions say nothing here, and are not looked for. But no risk is
below 0, and one so far below that no noise explains it is a lie: raised to 0 it would be a bound that nothing is above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.basics import FloatArray, ProblemError
from models.cohorts.fixed_point import Words
from models.cohorts.noise import BITS, NoisePlan, NoiseTerms, sigmas, word_count
from models.cuts.evidence import Evidence
from models.geometry.norms import dual_norm
from models.losses.base import Loss
from models.problem import ServerProblem

_WALL = 8.0
"""Times the steepest mean slope of losses, so that noise on planes is outweighed too."""
_NEVER = 2.0
"""Times the deviations that bounds go by: farther off noise never is, whatever the plan's confidence."""
_FLOAT_ROUNDING = 2.0**-36
"""Above what float64 sums of values of order 1 to 1,000 are off by; a plane is lowered by it."""


class NeverNoiseError(ProblemError):
    """A sum that is of no risks, whatever the noise in it."""


def bounded_answer(
    words: Words, point: FloatArray, problem: ServerProblem, loss: Loss, plan: NoisePlan, terms: NoiseTerms,
    present: Mapping[str, float], radii: Mapping[str, float], complete: bool,
) -> dict[str, FloatArray]:
    """Answer of a cohort for the step of ``noise.METHOD`` from the noisy sum of its plants' words (2 + D,).

    ``present`` are the shares of the plants that are in the sum, ``radii`` the plants' radii; of a cohort that is not
    ``complete`` the risk is not known (NaN).

    Raises
    ------
    ProblemError
        Fewer plants than the noise needs, or words of another number.
    NeverNoiseError
        The risk is below 0 by more than noise ever is.
    """
    if len(present) < terms.honest:
        raise ProblemError(f"the noise needs {terms.honest} plants in a sum, got {len(present)}")
    if words.shape != (word_count(point.shape[0]),):
        raise ProblemError(f"a sum of {word_count(point.shape[0])} words was due, got {words.shape}")
    values = np.ldexp(words.view(np.int64).astype(np.float64), -BITS)
    scales = sigmas(point, problem.n_features, loss, terms)
    deviation = {name: math.ldexp(sigma, -BITS) * math.sqrt(len(present)) for name, sigma in scales.items()}
    slope = values[2:]
    norm_weight = sum(share * radii[plant] for plant, share in present.items()) * loss.lipschitz * (1.0 - 1e-12)
    # Each plant's roundings: half a unit an entry.
    rounded = math.ldexp(len(present), -BITS - 1) * (1.0 + math.sqrt(point.shape[0]) * plan.within)
    off = plan.deviations * math.hypot(deviation["offset"], deviation["slope"] * plan.within)
    offset = float(values[1]) - off - rounded - _FLOAT_ROUNDING
    floor = norm_weight * float(dual_norm(point[: problem.n_features], problem.transport_norm))
    above = plan.deviations * deviation["risk"]
    if float(values[0]) + _NEVER * above + rounded + _FLOAT_ROUNDING < 0:
        raise NeverNoiseError(
            f"their risk is {float(values[0]):g}, noise is {_NEVER * above:.3g} of it at most, and no risk is below 0"
        )
    risk = float(values[0]) + above + rounded + _FLOAT_ROUNDING
    return {
        "risk": np.array(max(risk, floor) if complete else math.nan),
        "cut_height": np.array(offset + float(slope @ point) + floor),
        "slope": slope, "norm_weight": np.array(norm_weight),
    }


def walled(evidence: Evidence, problem: ServerProblem, loss: Loss, within: float) -> Evidence:
    """Evidence with planes that keep the model's least inside ``|u_p| <= within``; for the start of a run.

    ``K (+-u_p - within)`` is at or below 0 at all weights that the lower bound speaks of, and no risk is below 0. They
    stand with the cohort of the largest weight; K is steeper than any mean loss.
    """
    dimension, heaviest = problem.dimension, int(np.argmax(problem.weights))
    steep = _WALL * loss.lipschitz * math.sqrt(dimension) / float(problem.weights[heaviest])
    slopes = np.vstack([np.eye(dimension), -np.eye(dimension)]) * steep
    count = 2 * dimension
    return replace(
        evidence, cut_site=np.full(count, float(heaviest)), cut_offset=np.full(count, -steep * within),
        cut_slope=slopes, cut_norm_weight=np.zeros(count), cut_swing=np.zeros((count, 0)), cut_round=np.zeros(count),
        cut_used=np.zeros(count),
    )


def point_within(point: FloatArray, within: float) -> FloatArray:
    """The next point (D,) of the server half, drawn back into the norm that the bounds speak of: ask this one.

    Far weights would need far more noise on their risk, and noisy planes lead there.
    """
    size = float(np.linalg.norm(point))
    return point if size <= within else point * (within / size)


def norm_of_optimum(problem: ServerProblem, loss: Loss) -> float:
    """Euclidean norm within which some best weights of the whole problem lie; infinite where none is known.

    No better than zero weights, whose risk is L(0), and no risk is below ``radius c ||w||_*``. A loss that is 0 from 1
    on (hinge, smooth hinge) has a best intercept of at most ``1 + max_x |<w, x>|``: beyond, all scores are above 1 in
    size, and moving it back lowers no row's price and raises no row's loss.
    """
    radius = float(problem.weights @ [site.radius for site in problem.sites])
    at_zero, at_one = (float(value) for value in loss.value(np.array([0.0, 1.0])))
    if radius == 0 or (problem.fit_intercept and at_one > 0):
        return math.inf
    root = math.sqrt(problem.n_features)
    # Of the dual norms only the largest entry is below the Euclidean one.
    plane = at_zero / (radius * loss.lipschitz) * (root if problem.transport_norm == "l1" else 1.0)
    return math.hypot(plane, 1.0 + root * plane) if problem.fit_intercept else plane
