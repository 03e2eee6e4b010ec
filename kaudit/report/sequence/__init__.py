"""Sequence diagrams of simulated and replayed attempts."""
