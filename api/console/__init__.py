"""The operator's console: pages for people, made by the server."""
