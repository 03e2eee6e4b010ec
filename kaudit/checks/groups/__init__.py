"""Consumer groups: what they committed."""
