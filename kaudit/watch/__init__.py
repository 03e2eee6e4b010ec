"""A log that is being written, audited as it grows."""
