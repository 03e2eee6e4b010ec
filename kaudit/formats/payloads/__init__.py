"""What applications put into keys and values, as Python's values."""
