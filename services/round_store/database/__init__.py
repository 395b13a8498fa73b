"""Engine, transactions, failures, and statements that every repository takes."""
