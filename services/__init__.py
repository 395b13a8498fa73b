"""The parts of the running service; they do not import one another and meet in ``flows`` and ``api``."""
