"""Training methods, one a file: a site half (local data and a message in, an answer out) and a server half."""
