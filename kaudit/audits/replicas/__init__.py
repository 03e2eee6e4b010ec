"""What several copies of one partition show of each other, where a scan is given them together."""
