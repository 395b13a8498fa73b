"""API tokens, roles, site enrolment and the audit trail."""
