"""The proximal step of a site: ``min_w r(w) + penalty/2 ||w - centre||^2``, for every loss and support."""
