"""What brokers' and clients' own logs say, beside the batches of a partition."""
