"""The plants: enrolment, suspension, removal."""
