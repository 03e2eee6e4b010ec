"""What a run is about: cluster, topics, producers, network, faults."""
