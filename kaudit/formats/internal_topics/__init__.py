"""Records of Kafka's internal topics: __transaction_state, __consumer_offsets, __cluster_metadata."""
