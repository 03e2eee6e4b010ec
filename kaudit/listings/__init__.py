"""Lists without findings: timelines, producer ids, duplicates."""
