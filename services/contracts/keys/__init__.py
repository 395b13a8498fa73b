"""Signatures: Ed25519 keys, the line of the OEM's keys, what they sign of a version."""
