"""How a site comes to be: its folder, its enrolment, its key's change."""
