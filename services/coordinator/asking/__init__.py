"""What is asked of the plants, by which transport, and which answers are let in."""
