"""API tokens, roles and the enrolment of sites: pure rules; the round store keeps what they make."""
