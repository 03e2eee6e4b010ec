"""Accidents played on real brokers with real clients, and what is true after each: python -m tests.live_brokers.accidents [NAME ...]."""
