"""What crosses the border between the OEM and a plant, and the two frames in which it does."""
