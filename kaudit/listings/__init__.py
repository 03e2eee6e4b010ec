"""What kaudit lists rather than judges: timelines, producer ids, duplicates."""
