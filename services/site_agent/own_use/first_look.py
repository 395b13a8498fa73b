"""The first look at the data of a site that was just made: what does not fit is told then, not at the first run.

The site is made, and enrolled, all the same: the file, or its columns in the settings, may be mended later.
"""

from __future__ import annotations

from pathlib import Path

from services.contracts.errors import BallastError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import plain
from services.site_agent.own_use.own_screen import data_summary
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings
from services.site_agent.setup.site_setup import SETTINGS


def data_misfit(folder: Path) -> str | None:
    """Why the data do not fit the asset type, on one line; None where they do, or are not there yet."""
    settings = SiteSettings.from_toml(folder / SETTINGS)
    try:
        if not settings.data.path.exists():
            return None
        data_summary(settings.data, AssetType.from_toml(settings.asset_type), SitePolicy.from_toml(settings.policy))
    except BallastError as error:
        return plain(str(error))
    except OSError as error:  # nobody may look into the folder, for one
        return plain(f"{settings.data.path} cannot be read: {error.strerror}")
    return None


def misfit_lines(misfit: str | None, folder: Path) -> list[str]:
    """What tells it, and what looks again; none where the data fit."""
    if misfit is None:
        return []
    check = f"ballast-site check --config {folder / SETTINGS}"
    told = f"The site is made all the same: mend that, and `{check}` looks again."
    return [f"The data do not fit yet: {misfit}", told]
