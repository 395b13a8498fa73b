"""What the store keeps: runs, rounds, sites, plans, versions, events, the audit trail."""
