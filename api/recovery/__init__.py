"""Backup and restore of everything that the OEM's side keeps."""
