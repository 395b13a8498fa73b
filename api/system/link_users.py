"""Whether the NATS server lets in who it should: for ``ballast doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from api.backend.oem_keys import oem_keys
from api.backend.wiring import Backend
from api.system.finding import Finding
from services.bus.configuration import BusFiles
from services.bus.reload import refused_reload, running_pid
from services.contracts.errors import BallastError

CHECK: Final = "users of the plant link"


def link_users(backend: Backend, now: datetime) -> Iterator[Finding]:
    """No plant bears a key of the OEM's, and a running server took the users that it was last given."""
    try:
        ours = oem_keys(backend.settings)
    except (BallastError, OSError, ValueError):
        return  # what is wrong with the key is found elsewhere
    enrolled = [site for site in backend.store.sites.list_sites() if site.status != "removed"]
    bearers = [site.site_id for site in enrolled if ours & {*site.keys_at(now).split()}]
    files = BusFiles(backend.settings.bus_folder)
    is_ours = not backend.settings.nats.servers
    if bearers:
        yield Finding(
            check=CHECK, state="fail", said=f"{', '.join(bearers)} bears a key of the OEM's own, which no server takes",
            todo=f"{', '.join(f'`ballast site remove {site}`' for site in bearers)}, then enrol it with its own key",
        )
    elif is_ours and running_pid(files) is not None and (why := refused_reload(files)):
        yield Finding(
            check=CHECK, state="fail", said=f"the NATS server goes by older ones, for it refused the last: {why}",
            todo=f"mend what that says of the files in {files.folder}; `ballast up` has them read again within seconds",
        )
    elif ours and is_ours:
        yield Finding(check=CHECK, state="ok", said=f"{len(enrolled)} plants enrolled, none with a key of the OEM's")
