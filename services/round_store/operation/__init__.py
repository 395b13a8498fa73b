"""Repositories of the audit trail, events, webhooks and retention, and what pages show of many rows."""
