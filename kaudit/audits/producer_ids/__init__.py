"""Producer ids over all partitions, and the blocks they came from."""
