"""All tables: metadata of sites, plans, runs, versions and callers; no column holds data of a plant.

Who reads or writes some of them imports those alone, since each costs every command that does a millisecond or two.
"""

from __future__ import annotations

from services.round_store import (  # noqa: F401 - their tables join the metadata
    access_tables,
    audit_tables,
    operation_tables,
    plan_tables,
    run_tables,
    site_tables,
    version_tables,
)
from services.round_store.columns import Base

METADATA = Base.metadata
