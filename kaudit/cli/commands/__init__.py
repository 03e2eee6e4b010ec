"""One module per command: the signature, then a thin body."""
