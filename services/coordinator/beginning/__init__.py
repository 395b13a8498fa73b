"""Before the first round who joins and what is tuned; after the last one planes are coupled."""
