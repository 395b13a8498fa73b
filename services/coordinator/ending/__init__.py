"""What the sites tell of the trained model."""
