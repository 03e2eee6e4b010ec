"""Checks of the files beside the segments: snapshots, indexes, checkpoints."""
