"""What an operator can do, once for both faces: each changes the store and the audit trail in one transaction."""
