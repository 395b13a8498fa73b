"""Events, sent to addresses that administrators name."""
