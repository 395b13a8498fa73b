"""Pure array mathematics of robust federated training: no I/O, no clock, no logging, no global random state."""
