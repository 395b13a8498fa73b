"""The federated objective solved where all rows are in one process, with the certificate of a federated run."""
