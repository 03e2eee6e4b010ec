"""Checks of what is beside the segments on a disk: snapshots, indexes, checkpoints, segments in remote storage."""
