"""The plant's side: reads the vault, answers tasks, and keeps a ledger of all that leaves."""
