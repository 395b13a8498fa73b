"""All tables: metadata of sites, plans, runs, versions and callers; no column holds data of a plant.

Who reads or writes some of them imports those alone, since each costs every command that does a millisecond or two.
"""

from __future__ import annotations

from services.round_store.tables import (  # noqa: F401 - their tables join the metadata
    access,
    audit,
    operation,
    plans,
    runs,
    sites,
    versions,
)
from services.round_store.tables.columns import Base

METADATA = Base.metadata
