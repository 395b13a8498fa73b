"""Networks over small graphs (molecules): packed rows, three kinds of message passing, one objective."""
