"""The one way out: sign, write into the ledger, release; and the reader of the ledger."""
