"""Tables as they are read: where rows come from, and how a cell is read."""
