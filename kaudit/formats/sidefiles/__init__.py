"""Files beside the segments: indexes, producer snapshots, transaction indexes, checkpoints."""
