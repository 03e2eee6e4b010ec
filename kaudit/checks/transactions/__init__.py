"""Checks of transactions: their ends, their markers, and what their coordinator says of them."""
