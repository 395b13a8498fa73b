r"""Choice of phi by RF eq. (8), from gradients alone.

At the solution of phi = 0, with a in A and b in B the worst and the best mixture there, eq. (8) balances absolute and
relative unfairness by three numbers: ``<a, f>``, ``<b, f>`` and

    c = g' H^-1 g,      g = sum_i b_i grad f_i,      H = sum_i a_i hess f_i.

No site tells a Hessian. ``H p`` is a difference of gradients that the sites answer at two points, and conjugate
gradients find ``H^-1 g`` from such products, one exchange of messages each, at most as many as there are weights.
"""

from __future__ import annotations

import math

import numpy as np

from models.basics import FloatArray
from models.fairness.ambiguity_set import RelativeSet, balanced_phi
from models.methods.local_sgd.rule import Memory

_STEP, _SMALL = 1e-5, 1e-8
"""Length of the move that a product is a difference over, whose rounding is 1e-11 then; relative residual to end at."""
_KEYS = ("cg_solution", "cg_residual", "cg_direction")


def begin_choice(memory: Memory, ambiguity: RelativeSet) -> Memory:
    """Memory with the first of the conjugate directions; ``losses`` and ``slopes`` are those at ``point``."""
    losses = memory["losses"]
    pull = ambiguity.best.best(losses) @ memory["slopes"]
    return {
        **memory,
        "cg_pull": pull,
        "cg_shares": ambiguity.worst.worst(losses),
        "cg_solution": np.zeros_like(pull),
        "cg_residual": pull,
        "cg_direction": pull,
        "cg_left": np.array(float(pull.shape[0])),
    }


def probe(memory: Memory) -> FloatArray:
    """Point at which the next gradients are asked for."""
    return memory["point"] + _size(memory["cg_direction"]) * memory["cg_direction"]


def absorb(memory: Memory, slopes: FloatArray) -> Memory:
    """Memory after the gradients (n, D) at :func:`probe`; ``cg_left`` 0 where there is nothing more to ask."""
    solution, residual, direction = (memory[name] for name in _KEYS)
    product = memory["cg_shares"] @ (slopes - memory["slopes"]) / _size(direction)
    curvature, square = float(direction @ product), float(residual @ residual)
    if not curvature > 0.0:
        return {**memory, "cg_left": np.array(0.0)}
    rate = square / curvature
    solution, residual = solution + rate * direction, residual - rate * product
    after = float(residual @ residual)
    left = 0.0 if after <= (_SMALL**2) * float(memory["cg_pull"] @ memory["cg_pull"]) else float(memory["cg_left"]) - 1
    direction = residual + after / square * direction
    new = dict(zip(_KEYS, (solution, residual, direction), strict=True))
    return {**memory, **new, "cg_left": np.array(left)}


def chosen_phi(memory: Memory, ambiguity: RelativeSet) -> float:
    """Phi of eq. (8), by what the conjugate gradients found."""
    losses = memory["losses"]
    curvature = float(memory["cg_pull"] @ memory["cg_solution"])
    return balanced_phi(ambiguity.worst.largest(losses), ambiguity.best.smallest(losses), max(curvature, 0.0))


def without_choice(memory: Memory) -> Memory:
    """Memory without what only the choice needed."""
    return {name: array for name, array in memory.items() if not name.startswith("cg_")}


def _size(direction: FloatArray) -> float:
    return _STEP / max(math.sqrt(float(direction @ direction)), np.finfo(np.float64).tiny)
