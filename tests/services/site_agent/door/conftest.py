"""A plant's door in a cohort with noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from models.cohorts.noise import METHOD
from services.contracts.wire.messages import Kind
from services.site_agent.rules.policy import SitePolicy
from tests.services.site_agent.noisy_party import NoisyParty


@pytest.fixture
def new_noisy_party(make_site: Callable[..., Any], tmp_path: Path) -> Callable[..., NoisyParty]:
    def new(**policy: Any) -> NoisyParty:
        rules: dict[str, Any] = {
            "methods": (METHOD, "cohort-bundle"), "asset_types": ("pump",), "messages": get_args(Kind)
        }
        return NoisyParty(make_site(policy=SitePolicy(**(rules | policy))), tmp_path)

    return new
