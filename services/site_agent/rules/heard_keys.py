"""What the site has heard of changes of the OEM's key, on its disk."""

from __future__ import annotations

from pathlib import Path

from services.contracts.errors import BallastError
from services.contracts.keys.key_chain import KeyStatement, read_statements
from services.site_agent.settings import SettingsError


def heard_line(file: Path) -> tuple[KeyStatement, ...]:
    """Statements in the file; none where it is not there.

    :class:`SettingsError` where it holds something else: a change may have stood in it that is not to be forgotten.
    """
    if not file.exists():
        return ()
    try:
        return read_statements(file.read_bytes())
    except (BallastError, OSError):
        raise SettingsError(
            f"{file} does not hold what was heard of the OEM's keys: put it back from a backup; or hold oem_key in the "
            "settings to the OEM's present key (`ballast site oem-key` there) and remove the file"
        ) from None
