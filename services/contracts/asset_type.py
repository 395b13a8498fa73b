"""Asset type: feature contract, fault classes and target of one kind of machine, read from a TOML file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from models.losses.base import Task
from services.contracts.base import SLUG_PATTERN, Contract, Slug, place_of
from services.contracts.errors import InvalidInputError
from services.contracts.target import Target
from services.contracts.unknown_keys import unknown_key
from services.contracts.value_range import ValueRange

AnyContract = TypeVar("AnyContract", bound=Contract)


class Feature(ValueRange):
    """One feature: its name, unit and sensor range, what to do with a value outside the range, and how it is scaled.

    ``scale``: "linear", or "log" for a sensor whose readings span decades and are all above 0: equal ratios of readings
    are equal steps then, for the planes, the lifts and the balls alike (``Ranges.scale``).
    """

    unit: str
    required: bool = True
    # Left out where it says nothing, so that what was signed before there was a scale reads the same.
    scale: Literal["linear", "log"] = Field(default="linear", exclude_if=lambda scale: scale == "linear")

    @model_validator(mode="after")
    def _has_logarithms(self) -> Self:
        if self.is_log and self.low <= 0:
            raise ValueError(f"{self.name}: scale log needs a range above 0, low is {self.low:g}")
        return self

    @property
    def is_log(self) -> bool:
        """Whether readings are scaled by their logarithms."""
        return self.scale == "log"


class FaultClass(Contract):
    """One class: ``severity`` 0 is healthy, higher is worse."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_+-]{0,62}$")
    severity: int = Field(ge=0, le=10)
    description: str = ""


class AssetType(Contract):
    """A kind of machine. The first fault class is the healthy one.

    Fault classes are for classification, the target is for regression; a kind of machine has one of them or both.
    """

    name: Slug
    version: int = Field(default=1, ge=1)
    description: str = ""
    features: tuple[Feature, ...] = Field(min_length=1)
    fault_classes: tuple[FaultClass, ...] = ()
    target: Target | None = None

    @model_validator(mode="after")
    def _something_is_learnt(self) -> Self:
        if not self.fault_classes and self.target is None:
            raise ValueError("an asset type needs fault_classes (two or more), a target, or both")
        if len(self.fault_classes) == 1:
            raise ValueError("fault_classes must be two or more, the first of them the healthy one, got 1")
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for kind, names in (("feature", self.feature_names), ("fault class", self.class_names)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{kind} named twice: {', '.join(twice)}")
        if self.target is not None and self.target.name in self.feature_names:
            raise ValueError(f"the target and a feature are both called {self.target.name}")
        return self

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Feature names in the order of the weights."""
        return tuple(feature.name for feature in self.features)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Class names in the order of the scores."""
        return tuple(fault.name for fault in self.fault_classes)

    def heads(self, task: Task) -> int:
        """Linear functions to train: one for a regression or two classes, else one for each class against the rest."""
        return 1 if task == "regression" or len(self.fault_classes) == 2 else len(self.fault_classes)

    def missing_for_task(self, task: Task) -> str:
        """What is missing for a task, on one line; empty where nothing is."""
        if task == "regression" and self.target is None:
            return f"asset type {self.name} has no target, which a regression loss needs"
        if task == "classification" and not self.fault_classes:
            return f"asset type {self.name} has no fault classes, which a classification loss needs"
        return ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what training depends on: names, units, ranges, scales, treatment of outliers, classes, target."""
        essence: dict[str, object] = {
            "features": [[f.name, f.unit, f.low, f.high, f.required, f.out_of_range] for f in self.features],
            "classes": list(self.class_names),
        }
        if any(f.is_log for f in self.features):
            essence["log"] = [f.name for f in self.features if f.is_log]
        if self.target is not None:
            goal = self.target
            essence["target"] = [goal.name, goal.unit, goal.low, goal.high, goal.out_of_range]
        return hashlib.sha256(json.dumps(essence, sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read an asset type; raise :class:`InvalidInputError` with one line for each thing that does not fit."""
        return read_toml(cls, path, "asset type")


def read_toml(
    kind: type[AnyContract], path: Path, what: str, failure: type[InvalidInputError] = InvalidInputError
) -> AnyContract:
    """Contract in a TOML file; raise ``failure`` with one line for each thing that does not fit."""
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise failure(f"no {what} file at {path}") from None
    except OSError as error:
        raise failure(f"the {what} file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise failure(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise failure(f"{path} is not TOML: {error}") from None
    except ValidationError as error:
        raise failure(f"{path}: {explain(error, kind)}") from None


def read_contract(kind: type[AnyContract], path: Path, what: str) -> AnyContract:
    """Contract in a JSON file where its name ends so, else in a TOML file; ``InvalidInputError`` as ``read_toml``."""
    if path.suffix != ".json":
        return read_toml(kind, path, what)
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InvalidInputError(f"no {what} file at {path}") from None
    except OSError as error:
        raise InvalidInputError(f"the {what} file {path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise InvalidInputError(f"{path}: {explain(error, kind)}") from None


_OTHER_KINDS = {
    "tuple_type": "give a list, in brackets", "list_type": "give a list, in brackets",
    "dict_type": "give a table of keys and values", "model_type": "give a table of keys and values",
    "model_attributes_type": "give a table of keys and values", "path_type": "give a path, in quotes",
}
"""What to give where a value of another kind stands, in the words of the files that people write."""
_SLUG_WORDS = "a name has 1 to 40 lower-case letters, digits and dashes, and no dash at an end"
"""What an operator reads where a name does not fit its pattern."""
_MOST_FINDINGS = 5


def explain(error: ValidationError, kind: type[BaseModel] | None = None) -> str:
    """Pydantic's findings on one line: where, what, without the values (they may be private).

    With the ``kind`` that did not fit, a key that it does not know comes with the one that was meant.
    """
    return on_one_line([what for _, what in findings(error, kind)])


def findings(
    error: ValidationError, kind: type[BaseModel] | None = None
) -> list[tuple[tuple[int | str, ...], str]]:
    """Place of each finding, and what :func:`explain` says of it, the place in front."""
    found = []
    for item in error.errors(include_url=False, include_input=False):
        place = place_of(item["loc"])
        where = ".".join(str(part) for part in place)
        message = _OTHER_KINDS.get(item["type"], item["msg"].removeprefix("Value error, "))
        if item.get("ctx", {}).get("pattern") == SLUG_PATTERN:
            message = _SLUG_WORDS
        if kind is not None and item["type"] == "extra_forbidden":
            message = unknown_key(kind, item["loc"])
        found.append((place, f"{where}: {message}" if where else message))
    return found


def on_one_line(found: Sequence[str]) -> str:
    """The first findings, and how many more there are."""
    more = [f"and {len(found) - _MOST_FINDINGS} more"] if len(found) > _MOST_FINDINGS else []
    return "; ".join([*found[:_MOST_FINDINGS], *more])
