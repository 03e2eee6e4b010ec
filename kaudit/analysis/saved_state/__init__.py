"""What reading a log gave, kept for the next audit of it (`--state`)."""
