"""Which rows a vector would isolate, and the vector that leaves in its place."""
