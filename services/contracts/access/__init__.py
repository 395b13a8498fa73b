"""Who may call the API, and how a plant gets in."""
