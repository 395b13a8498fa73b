"""Pages for people: the first one and the documentation."""
