"""All addresses of the console."""

from __future__ import annotations

from api.console.endpoints import admin, assets, docs, enrolment, fleet, models, oidc, plans, runs, sessions

ROUTERS = tuple(each.router for each in (sessions, oidc, assets, fleet, runs, models, plans, admin, enrolment, docs))
