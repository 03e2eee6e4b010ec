"""What a broker remembers of a producer id in a partition, and how it validates appends by it."""
