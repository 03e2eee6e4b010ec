"""Replicas of one partition held against one another, batch by batch."""
