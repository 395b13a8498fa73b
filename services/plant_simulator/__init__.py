"""A physics-based triplex pump that writes raw signals."""
