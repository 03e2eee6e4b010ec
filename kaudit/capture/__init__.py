"""Raw batches of a live cluster, written as the segment files a broker would have."""
