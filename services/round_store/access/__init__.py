"""Repositories of tokens, sessions, keys and enrolment codes."""
