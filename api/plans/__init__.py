"""What is trained, how and when."""
