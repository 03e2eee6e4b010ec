"""Files of attempts, answered by the broker of a release."""
