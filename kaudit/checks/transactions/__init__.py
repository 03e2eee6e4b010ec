"""Checks of transactions: their ends, their markers, and the state at their coordinator."""
