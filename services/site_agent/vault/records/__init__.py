"""What has left, on the plant's disk, and what it comes to."""
