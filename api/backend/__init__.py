"""What both faces stand on: the services opened from the settings, and who acts on them."""
