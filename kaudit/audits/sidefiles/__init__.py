"""Files beside the segments, compared with the log."""
