"""Proxies that the environment names are for other hosts: this one is asked past them.

Variables such as ``http_proxy`` say how other hosts are reached. Libraries take them for this host too, where
``no_proxy`` does not name it: what goes to the loopback in the open, a password or a token with it, would go to the
proxy, and the proxy has a loopback of its own.
"""

from __future__ import annotations

import os
from typing import Final

HERE: Final = ("localhost", "127.0.0.1", "::1")
_SPELLINGS: Final = ("no_proxy", "NO_PROXY")  # libraries read the one, the other or both


def reach_this_host_directly() -> None:
    """Where a proxy is named, let ``no_proxy`` have this host too: for this process and those that it starts."""
    names = {name.lower() for name, value in os.environ.items() if value}
    if not any(name.endswith("_proxy") and name != "no_proxy" for name in names):
        return
    said = next((os.environ[spelling] for spelling in _SPELLINGS if os.environ.get(spelling)), "")
    known = [word for word in map(str.strip, said.split(",")) if word]
    if "*" not in known:
        known += [host for host in HERE if host not in known]
    os.environ.update(dict.fromkeys(_SPELLINGS, ",".join(known)))
