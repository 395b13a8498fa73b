"""A kind of machine: its sensors, fault classes and target, with ranges and scales."""
