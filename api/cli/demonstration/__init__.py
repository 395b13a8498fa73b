"""The plants of ``ballast demo``, and its account."""
