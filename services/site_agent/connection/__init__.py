"""The one outbound connection to the OEM."""
