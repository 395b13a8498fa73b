"""The plant's own page: what the site's files say, on the loopback alone. It reads, and neither writes nor sends."""
