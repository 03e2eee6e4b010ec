"""Schedulers of the pipeline. Scheduling only."""
