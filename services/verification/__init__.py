"""Proof that a certificate holds, from what a version carries and nothing else."""
