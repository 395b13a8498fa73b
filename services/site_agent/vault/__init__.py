"""The only code that opens raw data."""
