"""From bytes of segments to rows: runs, boundary batches, markers and counts of a range."""
