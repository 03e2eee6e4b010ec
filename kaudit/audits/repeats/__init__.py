"""Records that are in the log again without a sequence that says so."""
