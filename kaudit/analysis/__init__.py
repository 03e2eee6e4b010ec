"""From chunks of bytes to observations and findings, for every engine."""
