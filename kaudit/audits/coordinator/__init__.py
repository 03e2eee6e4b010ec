"""Decisions of the coordinator, from __transaction_state."""
