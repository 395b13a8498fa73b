"""The plant's own draws: which rows a step goes by, with which partners they mix, which units it leaves out.

A method's message names a number to draw by, so that a repeated message gets the same answer. Whoever knows it would
know the batch, and at zero weights every coefficient of it: as many answers as rows are then the rows themselves, sums
over plants no less than single ones. So the number is replaced in the vault by one that its secret, the rows and the
whole question decide: the same question over the same rows draws the same, and nobody else can draw it.

So is the seed by which a radius is estimated: of halves that the asker knows, a flip cost above all distances makes the
distance between them the difference of their class counts, one equation for the labels with each seed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import numpy as np

from models.basics import FloatArray
from services.contracts.problems.training_spec import TrainingSpec

DRAW: Final = "draw"
"""Array of a message, a number for each head."""
_EXACT: Final = 2**53
"""Whole numbers below are exact in float64."""


def with_own_draws(message: Mapping[str, FloatArray], secret: bytes, question: bytes) -> dict[str, FloatArray]:
    """The message with numbers of the vault's own in place of those to draw by; others as they are.

    ``secret`` is of the vault and its rows, ``question`` the digest of all that is asked. Heads that were given one
    number have one in common here too.
    """
    if DRAW not in message:
        return dict(message)
    asked = np.asarray(message[DRAW], dtype=np.float64)
    own = [_number(secret, question, each) for each in asked.ravel()]
    return {**message, DRAW: np.array(own).reshape(asked.shape)}


def with_own_seed(spec: TrainingSpec, secret: bytes) -> TrainingSpec:
    """The problem with a seed of the vault's own to estimate a radius from; one without an estimate as it is.

    The secret is the vault's alone, so the radius is the same from the join to the end of a run.
    """
    radius = spec.radius
    if radius.rule != "confidence" or radius.tail is not None:
        return spec
    own = int(_number(secret, b"radius", float(radius.seed)))
    return spec.model_copy(update={"radius": radius.model_copy(update={"seed": own})})


def _number(secret: bytes, question: bytes, asked: float) -> float:
    drawn = hmac.new(secret, b"draw" + question + np.float64(asked).tobytes(), hashlib.sha256).digest()
    return float(int.from_bytes(drawn[:8], "big") % _EXACT)
