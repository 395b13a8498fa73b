"""The checks of scikit-learn, for every estimator."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator


def checked(estimator: Any) -> None:
    """All of them are made, and none fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        warnings.filterwarnings("ignore", "fit got no groups")
        results = check_estimator(estimator)
    assert len(results) > 40
    assert not [each for each in results if each["status"] == "failed"]
