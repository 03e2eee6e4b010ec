"""Replicas of one partition compared batch by batch."""
