"""Checks of replicas of one partition that do not hold the same (kaudit diff)."""
