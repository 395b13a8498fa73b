r"""What a cohort was asked in a round, as bytes that all sides hash alike; and what words say to it.

Words hold ``share * answer`` of a plant or their sum over plants. A convex risk times a share is one, so is a sum: each
is held to ``risk(w_i) >= cut_j(w_i)`` as it stands (``services.verification.contradiction``). Rounding of the words
raises risks and lowers cuts for ``|w| <= 2^12``, so nothing true is refuted by it. A plant tells a risk by up to as
much too high as the cut beside it is too low (``services.site_agent.vault.isolation.guard``): two risks at one point
may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.cohorts.fixed_point import Words, from_words
from models.problem import REACH
from services.contracts.errors import InvalidInputError
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import FrameError, digest, pack_arrays, unpack
from services.verification.contradiction import Answer, contradiction_of

_KIND = "ballast.sum-question/1"


@dataclass(frozen=True)
class Question:
    """A round of a cohort: ``points`` (K, D) or (K, q, D) of K heads, ``shapes`` of an answer, the heads first.

    ``cohort`` is the fingerprint. ``spec`` gives norm and intercept alone: plants may have radii of their own.
    """

    run_id: str
    cohort: str
    round: int
    spec: TrainingSpec
    shapes: Mapping[str, tuple[int, ...]]
    points: FloatArray

    def frame(self) -> bytes:
        """The bytes that are hashed and kept."""
        header = {
            "kind": _KIND, "run_id": self.run_id, "cohort": self.cohort, "round": self.round,
            "transport_norm": self.spec.transport_norm, "fit_intercept": self.spec.fit_intercept,
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
        }
        return pack_arrays(header, {"points": np.asarray(self.points, dtype=np.float64)})

    @property
    def sha256(self) -> str:
        """What a plant commits itself to have answered."""
        return digest(self.frame())

    @staticmethod
    def read(frame: bytes) -> Question:
        """Question from :meth:`frame`; :class:`InvalidInputError` where it is none."""
        try:
            found = unpack(frame)
            header, points = found.header, found.arrays["points"]
            if header["kind"] != _KIND or points.ndim not in (2, 3) or not np.isfinite(points).all():
                raise ValueError
            spec = TrainingSpec.model_validate(
                {"transport_norm": header["transport_norm"], "fit_intercept": header["fit_intercept"]}
            )
            shapes = {str(name): tuple(int(n) for n in shape) for name, shape in header["shapes"].items()}
            if any(shape[: points.ndim - 1] != points.shape[:-1] for shape in shapes.values()) or "risk" not in shapes:
                raise ValueError
            return Question(str(header["run_id"]), str(header["cohort"]), int(header["round"]), spec, shapes, points)
        except (FrameError, ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInputError("this is no question to a cohort, as a run keeps it for an audit") from None

    def answers(self, words: Words) -> list[Answer]:
        """What words say, one answer for each of the q points; :class:`InvalidInputError` where they do not fit."""
        try:
            arrays = from_words(words, self.shapes)
        except ProblemError as error:
            raise InvalidInputError(str(error)) from None
        when, points = f"round {self.round}", self.points
        if points.ndim == 2:
            return [Answer(when, self.spec, {"point": points}, arrays)]
        return [
            Answer(
                when, self.spec, {"point": points[:, k]}, {name: each[:, k] for name, each in arrays.items()}
            )
            for k in range(points.shape[1])
        ]


def falsehood(questions: Sequence[Question], words: Sequence[Words]) -> str:
    """Why words to two questions cannot all be true, in words; empty where nothing speaks against them.

    Of one plant, or of one set of plants in both.
    """
    answers = []
    for question, each in zip(questions, words, strict=True):
        if float(np.abs(question.points).max(initial=0.0)) > REACH:
            return ""
        answers += question.answers(each)
    for answer in answers:
        lowest = float(answer.said["risk"].min())
        if lowest < 0.0:
            return f"its risk is {lowest:.6g} in {answer.when}, and no loss is below 0"
    return contradiction_of(answers, above=True)
