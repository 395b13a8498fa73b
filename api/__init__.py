"""The OEM's faces: REST API and command line."""
