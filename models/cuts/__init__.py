"""Cuts of risks: the model that they make, the bound that it proves, and the certificate."""
