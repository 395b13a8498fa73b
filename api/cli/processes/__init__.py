"""What ``ballast up`` and ``ballast demo`` start on this host, and watch."""
