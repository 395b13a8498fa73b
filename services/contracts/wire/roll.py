"""Words of the coordinator on a site's task subject that are no task: they carry nothing, and ask for no data."""

from __future__ import annotations

ROLL = b""
"""Without a reply address: say hello again. With one: only whether somebody hears it counts, and nobody answers."""
TWINS = b"twins"
"""More than one agent hears this site's tasks."""
WORDS = frozenset({ROLL, TWINS})
CONNECTED_SECONDS = 30.0
"""A site that was there so long ago at most is connected: three looks, so that one may go wrong."""
LOOK_SECONDS = CONNECTED_SECONDS / 3
"""Between two looks of the flows process at who is there."""
