"""What this site allows: its policy, and the file in which it stands."""
