"""What one training costs: the unit in which the budget of a tuning is counted."""

from __future__ import annotations

import math
from typing import Final

from models.methods.protocol import Method
from models.problem import ServerProblem
from models.tuning.budget import OneTraining

FIRST_ROUNDS: Final = 12
"""Rounds by which a tuning is counted where no training is known: fewer than one to a gap of 1e-3 mostly takes."""
FIRST_RARE_ROUNDS: Final = 20
"""The same where a class is rare: a training of splines mostly takes more, one of planes may take half."""


def one_training(method: Method, problem: ServerProblem, heads: int, rounds: int) -> OneTraining:
    """Cost of a training of ``rounds`` rounds, counted by what the method's first message and answer hold."""
    server = method.server
    sent = next(iter(server.messages(server.init(problem), problem).values()))
    told = server.answer_shapes(problem.dimension, problem.n_swings, problem.parameters)
    numbers = sum(array.size for array in sent.values()) + sum(math.prod(shape) for shape in told.values())
    return OneTraining(rounds, float(heads * numbers * rounds))
