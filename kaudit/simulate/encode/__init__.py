"""Model to bytes: the formats a broker writes."""
