"""What a plant's people see and use themselves; nothing of it is sent."""
